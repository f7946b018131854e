//! The part of a network that an optimiser and a checkpoint know: its parameters.

use super::Param;

/// A network with parameters.
pub trait Network {
    /// All parameters, running statistics included, in an order that stays.
    fn params(&self) -> impl Iterator<Item = &Param>;

    /// The same, to be changed.
    fn params_mut(&mut self) -> impl Iterator<Item = &mut Param>;
}
