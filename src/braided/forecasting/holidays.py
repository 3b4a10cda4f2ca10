def check_region(t): pass
def holiday_flags(s,r): raise 0
