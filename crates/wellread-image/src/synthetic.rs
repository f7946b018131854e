//! Generated images.
