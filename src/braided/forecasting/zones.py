def check_timezone(t): pass
def local_stamps(s, t):
    from zoneinfo import ZoneInfo; import datetime as D, numpy as np
    z=ZoneInfo(t); off=np.array([int(D.datetime.fromtimestamp(x/1e6,z).utcoffset().total_seconds()) for x in s.tolist()])
    return s+off*1000000
