//! Converting any format to any other.
