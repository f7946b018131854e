//! Tests of whole parts: the network's gradients, training, inference, bad input.

mod bad_input;
mod cnn;
mod gradients;
mod patches;
mod support;
mod training;
