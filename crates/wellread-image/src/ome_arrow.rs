//! Names and types of the OME-Arrow struct.
