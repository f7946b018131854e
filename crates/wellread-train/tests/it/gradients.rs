//! The network's gradients against finite differences, and the requirements of training.

use crate::support::{random, slope_errors};
use wellread_train::net::{Adam, Loss, NormKind, Unet, UnetSpec};

fn spec(dimensions: usize, norm: NormKind) -> UnetSpec {
    UnetSpec { dimensions, c_in: 2, c_out: 1, width: 4, depth: 2, norm }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    for (dimensions, shape) in [(2, [2, 1, 9, 14, 2]), (3, [2, 5, 8, 7, 2])] {
        for (norm, loss) in [
            (NormKind::Batch, Loss::BceDice),
            (NormKind::Instance, Loss::Mse),
            (NormKind::None, Loss::BceDice),
        ] {
            let mut net = Unet::new(spec(dimensions, norm), 3).unwrap();
            let x = random(shape, 1);
            let mut target = random([shape[0], shape[1], shape[2], shape[3], 1], 2);
            target.data.iter_mut().for_each(|v| *v = f32::from(u8::from(*v > 0.0)));
            let pass = net.forward(&x).unwrap();
            let (_, gradient) = loss.of(&pass.logits, &target).unwrap();
            net.backward(pass, &gradient).unwrap();
            let of_net = |net: &mut Unet| loss.of(&net.forward(&x).unwrap().logits, &target).unwrap().0;
            let mut errors = vec![];
            for (name, error) in slope_errors(&net, of_net) {
                // ReLU and maximum have kinks, which some step comes across: the slope is another there.
                assert!(error < 0.1, "{dimensions}D {norm:?} {name}: {error}");
                errors.push(error);
            }
            errors.sort_by(f64::total_cmp);
            assert!(
                errors.len() >= 20 && errors[errors.len() / 2] < 2e-3,
                "{dimensions}D {norm:?} {errors:?}"
            );
        }
    }
}

#[test]
fn one_batch_is_learnt_by_heart_and_the_same_each_time() {
    for (dimensions, shape) in [(2, [2, 1, 16, 16, 2]), (3, [1, 4, 12, 12, 2])] {
        let x = random(shape, 1);
        let mut target = random([shape[0], shape[1], shape[2], shape[3], 1], 2);
        let pixels = x.data.chunks_exact(2);
        target.data.iter_mut().zip(pixels).for_each(|(t, p)| *t = f32::from(u8::from(p[0] + p[1] > 0.2)));
        let train = |threads: usize| -> Vec<f64> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut net = Unet::new(spec(dimensions, NormKind::Batch), 7).unwrap();
                let mut adam = Adam::new(&net, 1e-4);
                (0..80)
                    .map(|_| {
                        let pass = net.forward(&x).unwrap();
                        let (loss, gradient) = Loss::BceDice.of(&pass.logits, &target).unwrap();
                        net.backward(pass, &gradient).unwrap();
                        adam.step(&mut net, 3e-2);
                        loss
                    })
                    .collect()
            })
        };
        let losses = train(2);
        assert!(losses[0] > 0.9 && losses[79] < 0.4 * losses[0], "{dimensions}D {losses:?}");
        // To the bit, with another number of threads as well.
        assert_eq!(losses, train(1));
    }
}

#[test]
fn inference_agrees_with_training_where_statistics_do() {
    let mut net = Unet::new(spec(2, NormKind::None), 1).unwrap();
    let x = random([1, 1, 13, 10, 2], 4);
    let trained = net.forward(&x).unwrap().logits;
    assert_eq!(net.logits(&x).unwrap(), trained);
    // Batch normalisation: after enough passes over one batch, running statistics are the batch's.
    let mut net = Unet::new(spec(2, NormKind::Batch), 1).unwrap();
    let x = random([4, 1, 16, 16, 2], 4);
    let trained = (0..200).map(|_| net.forward(&x).unwrap().logits).last().unwrap();
    let inferred = net.logits(&x).unwrap();
    let far = trained.data.iter().zip(&inferred.data).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let largest = trained.data.iter().fold(0.0, |m: f32, v| m.max(v.abs()));
    // The unbiased variance differs by one part in the number of pixels, which at the bottom are 64.
    assert!(far < 0.08 * largest, "{far} of {largest}");
}

#[test]
fn a_result_depends_on_its_surroundings_only_within_reach() {
    let net = Unet::new(UnetSpec { depth: 1, ..spec(2, NormKind::None) }, 1).unwrap();
    let reach = net.reach();
    let width = 2 * (2 * reach + 4);
    let (a, mut b) = (random([1, 1, 2, width, 2], 4), random([1, 1, 2, width, 2], 5));
    let same = 2 * (reach + 1);
    for y in 0..2 {
        let row = y * width * 2;
        b.data[row..row + same * 2].copy_from_slice(&a.data[row..row + same * 2]);
    }
    let (a, b) = (net.logits(&a).unwrap(), net.logits(&b).unwrap());
    for x in 0..same - reach {
        assert_eq!(a.data[x], b.data[x], "column {x}");
    }
    assert_ne!(a.data, b.data);
}
