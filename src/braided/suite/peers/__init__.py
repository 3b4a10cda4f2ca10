"""Other packages and methods, with the settings that the suite compares with; each imported where it is used."""
