//! Parameters of a model: their initial values, their names in a state, and how they lie in memory.
//!
//! ```text
//! layout: names, shapes ──seed──▶ initial values ──channels_last──▶ what kernels read
//!    StateDict ──from_state──▶ values ──────────────┘      └──channels_first──▶ to_state ──▶ StateDict
//! ```

use crate::init::default_weights;
use crate::{Error, NamedArray, Result, StateDict};

/// Name and shape of a parameter, as PyTorch has them.
pub(crate) type Parameter = (&'static str, Vec<usize>);

/// Initial values in PyTorch's layouts: uniform in ±1/sqrt(fan in), a stream of the seed for each parameter.
pub(crate) fn initial(layout: &[Parameter], seed: u64) -> Vec<Vec<f32>> {
    let values = |(i, (_, shape)): (usize, &Parameter)| {
        // A bias has the fan-in of the weights before it.
        let fan_in = layout[i - i % 2].1[1..].iter().product();
        default_weights(seed, i as u64, shape.iter().product(), fan_in)
    };
    layout.iter().enumerate().map(values).collect()
}

/// Numbers that the model gives for an image: as many as its last parameter, the bias of the output, has.
pub(crate) fn output_width(layout: &[Parameter]) -> usize {
    layout.last().map_or(1, |(_, shape)| shape.iter().product())
}

/// Names and shapes beside values in PyTorch's layouts.
pub(crate) fn to_state(layout: &[Parameter], values: impl IntoIterator<Item = Vec<f32>>) -> StateDict {
    let named = |((name, shape), values): (&Parameter, Vec<f32>)| NamedArray {
        name: (*name).to_owned(),
        shape: shape.clone(),
        values,
    };
    layout.iter().zip(values).map(named).collect()
}

/// Values in PyTorch's layouts, in the model's order.
///
/// # Errors
/// A missing, surplus or misshapen parameter.
pub(crate) fn from_state<'s>(layout: &[Parameter], state: &'s [NamedArray]) -> Result<Vec<&'s [f32]>> {
    let mut values = Vec::with_capacity(layout.len());
    for (name, shape) in layout {
        let Some(array) = state.iter().find(|a| a.name == *name) else {
            return Err(Error::new(format_args!("the parameter {name} is missing")));
        };
        if &array.shape != shape || array.values.len() != shape.iter().product::<usize>() {
            return Err(Error::new(format_args!(
                "the parameter {name} has shape {:?} and {} values; the model wants {shape:?}",
                array.shape,
                array.values.len()
            )));
        }
        values.push(array.values.as_slice());
    }
    let known = |name: &str| layout.iter().any(|(known, _)| *known == name);
    if let Some(surplus) = state.iter().find(|a| !known(&a.name)) {
        return Err(Error::new(format_args!("the model has no parameter {}", surplus.name)));
    }
    Ok(values)
}

/// Weights of a convolution from `out x in x K x K` to `out x K x K x in`; other parameters as they are.
pub(super) fn channels_last(values: &[f32], shape: &[usize]) -> Vec<f32> {
    match *shape {
        [_, channels, height, width] => swapped(values, channels, height * width),
        _ => values.to_vec(),
    }
}

/// The way back from [`channels_last`]; `shape` is PyTorch's here, too.
pub(super) fn channels_first(values: &[f32], shape: &[usize]) -> Vec<f32> {
    match *shape {
        [_, channels, height, width] => swapped(values, height * width, channels),
        _ => values.to_vec(),
    }
}

/// Matrices of `rows x columns`, one after the other, each transposed.
fn swapped(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let of = |matrix: &[f32]| -> Vec<f32> {
        (0..rows * columns).map(|i| matrix[i % rows * columns + i / rows]).collect()
    };
    values.chunks_exact(rows * columns).flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_go_last_and_come_back() {
        // Two kernels of two channels and 1 x 3 pixels.
        let values: Vec<f32> = (0..12u8).map(f32::from).collect();
        let last = channels_last(&values, &[2, 2, 1, 3]);
        assert_eq!(last, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0, 6.0, 9.0, 7.0, 10.0, 8.0, 11.0]);
        assert_eq!(channels_first(&last, &[2, 2, 1, 3]), values);
        assert_eq!(channels_last(&values, &[3, 4]), values);
        assert_eq!(channels_first(&values, &[12]), values);
    }

    #[test]
    fn a_bias_has_the_bound_of_its_weights() {
        let layout = vec![("a.weight", vec![500, 100]), ("a.bias", vec![500])];
        let values = initial(&layout, 3);
        assert_eq!([values[0].len(), values[1].len(), output_width(&layout)], [50_000, 500, 500]);
        for values in values {
            let largest = values.iter().fold(0.0f32, |most, v| most.max(v.abs()));
            assert!((0.095..=0.1).contains(&largest), "{largest}");
        }
    }
}
