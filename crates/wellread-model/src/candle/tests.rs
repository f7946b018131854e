//! candle on the CPU, which differentiates by itself, against the gradients of our own.

use super::create;
use crate::init::Uniform;
use crate::{ModelOptions, StateDict, models};

const STEPS: usize = 6;

fn pixels(seed: u64, count: usize) -> Vec<f32> {
    let mut uniform = Uniform::new(seed, 9);
    (0..count).map(|_| uniform.next_within(0.5) + 0.5).collect()
}

/// How far each parameter went, as a vector.
fn moved(before: &StateDict, after: &StateDict) -> Vec<Vec<f64>> {
    let of = |(before, after): (&f32, &f32)| f64::from(*after) - f64::from(*before);
    before.iter().zip(after).map(|(b, a)| b.values.iter().zip(&a.values).map(of).collect()).collect()
}

fn length(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|v| v * v).sum::<f64>().sqrt()
}

#[test]
fn losses_and_steps_are_those_of_our_own_gradients() {
    for (entry, shape) in
        models().iter().flat_map(|m| [[3, 1, 20, 17], [2, 3, 9, 30], [1, 1, 70, 150]].map(|s| (m, s)))
    {
        let options = ModelOptions { seed: 5, threads: 2, in_channels: shape[1], ..ModelOptions::default() };
        let mut ours = crate::create(entry.name, &options).unwrap();
        let mut theirs = create(entry.name, &options).unwrap();
        assert!(ours.backend().starts_with("wellread") && theirs.backend().starts_with("candle"));
        let before = ours.state_dict().unwrap();
        assert_eq!(before, theirs.state_dict().unwrap(), "{}", entry.name);

        for step in 0..STEPS {
            let batch = pixels(step as u64, shape.iter().product());
            let [our, their] = [&mut ours, &mut theirs].map(|m| m.forward(&batch, shape).unwrap());
            for (a, b) in our.as_slice().iter().zip(their.as_slice()) {
                assert!((a - b).abs() < 3e-5, "{}, step {step}: {a} against candle's {b}", entry.name);
            }
            let [our, their] = [&mut ours, &mut theirs].map(|m| m.train_step(&batch, shape).unwrap());
            assert!((our - their).abs() < 3e-5 * their, "{}, step {step}: {our}, {their}", entry.name);
        }
        let [our, their] = [&ours, &theirs].map(|m| moved(&before, &m.state_dict().unwrap()));
        for ((our, their), array) in our.iter().zip(&their).zip(&before) {
            let far = length(their.iter().copied());
            let apart = length(our.iter().zip(their).map(|(a, b)| a - b));
            assert!(far > 0.0 && apart < 2e-3 * far, "{} {}: {apart} of {far}", entry.name, array.name);
        }
    }
}

#[test]
fn weights_travel_and_what_does_not_fit_is_refused() {
    let (shape, options) = ([2, 1, 12, 10], ModelOptions { threads: 1, ..ModelOptions::default() });
    let batch = pixels(1, shape.iter().product());
    for entry in models() {
        let mut ours = crate::create(entry.name, &options).unwrap();
        ours.train_step(&batch, shape).unwrap();
        let state = ours.state_dict().unwrap();
        let mut theirs = create(entry.name, &ModelOptions { seed: 8, ..options.clone() }).unwrap();
        assert!(theirs.load_state_dict(&state[1..].to_vec()).is_err());
        assert_ne!(theirs.state_dict().unwrap(), state);
        theirs.load_state_dict(&state).unwrap();
        assert_eq!(theirs.state_dict().unwrap(), state);
        assert_eq!(theirs.parameters(), ours.parameters());

        assert!(theirs.forward(&batch, [1, 1, 12, 10]).is_err());
        assert!(theirs.train_step(&batch, [1, 2, 12, 10]).is_err());
        let error = theirs.train_step(&[f32::NAN; 9], [1, 1, 3, 3]).unwrap_err();
        assert!(error.cause().contains("diverged"), "{error}");
    }
    assert!(create("large-cnn", &options).err().unwrap().hint_text().unwrap().contains("small-cnn"));
}
