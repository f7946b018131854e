//! SHA-256 of pixels, per image and of a whole set.
