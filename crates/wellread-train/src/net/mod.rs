//! A U-Net and a small convolutional network with their gradients, on plain memory: no tensor library.
//!
//! ```text
//! Tensor ──Unet::forward──▶ logits ──loss──▶ gradient of the logits ──Unet::backward──▶ gradients in Params ──Adam──▶
//! ```
//!
//! Every operator is a function that reads tensors and writes new ones, beside one that leads gradients back. The
//! network calls them in order and keeps what the way back needs. All sums have a fixed order: the same seed gives the
//! same losses to the bit, whatever the number of threads.
//!
//! | module | what it holds |
//! |---|---|
//! | [`tensor`] | [`Tensor`]: `N x D x H x W x C` floats |
//! | [`param`] | [`Param`]: name, values, gradient, and PyTorch's layout of them |
//! | [`norm`] | batch and instance normalisation with ReLU |
//! | [`resize`] | max-pooling; doubling and joining with the skip connection |
//! | [`block`] | convolution, normalisation and ReLU as one |
//! | [`network`] | [`Network`]: the parameters, as optimisers and checkpoints know them |
//! | [`unet`] | [`Unet`]: a result for each pixel |
//! | [`cnn`] | [`Cnn`]: a few numbers for an image |
//! | [`loss`] | losses and their gradients |
//! | [`adam`] | [`Adam`] with decoupled weight decay |

pub mod adam;
pub mod block;
pub mod cnn;
pub mod loss;
pub mod network;
pub mod norm;
pub mod param;
pub mod resize;
pub mod tensor;
pub mod unet;

pub use adam::Adam;
pub use cnn::{Cnn, CnnSpec};
pub use loss::Loss;
pub use network::Network;
pub use norm::NormKind;
pub use param::Param;
pub use tensor::Tensor;
pub use unet::{Unet, UnetSpec};
