"""How MT-WRLS keeps its state."""
