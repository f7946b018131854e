//! Reading every pixel, and comparing with expected checksums or another set.
