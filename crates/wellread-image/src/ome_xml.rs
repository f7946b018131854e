//! OME-XML, read and written.
