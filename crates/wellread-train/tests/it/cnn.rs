//! The small convolutional network: its gradients against finite differences, and the requirements of training.

use crate::support::{random, slope_errors};
use wellread_train::net::{Adam, Cnn, CnnSpec, Loss, NormKind, Tensor};

fn spec(norm: NormKind) -> CnnSpec {
    CnnSpec { c_in: 2, c_out: 2, width: 4, depth: 2, norm }
}

/// Images, each of its own brightness in each channel, and two numbers for each of them.
fn pair() -> [Tensor; 2] {
    let mut x = random([4, 1, 8, 12, 2], 1);
    for (i, value) in x.data.iter_mut().enumerate() {
        let (image, channel) = (i / (8 * 12 * 2), i % 2);
        *value += [[0.0, 1.0], [1.0, -1.0], [2.0, 0.5], [-1.0, 0.0]][image][channel];
    }
    let wanted = vec![1.0, -2.0, -1.5, 1.0, 2.0, 0.5, 0.0, -1.0];
    [x, Tensor::new(wanted, [4, 1, 1, 1, 2]).unwrap()]
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let [x, wanted] = pair();
    for norm in [NormKind::Batch, NormKind::Instance, NormKind::None] {
        let mut net = Cnn::new(spec(norm), 3).unwrap();
        let pass = net.forward(&x).unwrap();
        let (_, gradient) = Loss::Mse.of(&pass.output, &wanted).unwrap();
        net.backward(pass, &gradient).unwrap();
        let loss = |net: &mut Cnn| Loss::Mse.of(&net.forward(&x).unwrap().output, &wanted).unwrap().0;
        let mut errors = vec![];
        for (name, error) in slope_errors(&net, loss) {
            // ReLU and maximum have kinks, which some step comes across: the slope is another there.
            assert!(error < 0.1, "{norm:?} {name}: {error}");
            errors.push(error);
        }
        errors.sort_by(f64::total_cmp);
        assert!(errors.len() >= 6 && errors[errors.len() / 2] < 1e-2, "{norm:?} {errors:?}");
        // A gradient of another shape is refused.
        let pass = net.forward(&x).unwrap();
        assert!(net.backward(pass, &Tensor::zeros([4, 1, 1, 1, 1])).is_err());
    }
}

#[test]
fn one_batch_is_learnt_by_heart_and_the_same_each_time() {
    let [x, wanted] = pair();
    let train = |threads: usize| -> Vec<f64> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut net = Cnn::new(spec(NormKind::Batch), 7).unwrap();
            let mut adam = Adam::new(&net, 0.0);
            let step = |_| {
                let pass = net.forward(&x).unwrap();
                let (loss, gradient) = Loss::Mse.of(&pass.output, &wanted).unwrap();
                net.backward(pass, &gradient).unwrap();
                adam.step(&mut net, 3e-2);
                loss
            };
            (0..120).map(step).collect()
        })
    };
    let losses = train(2);
    assert!(losses[119] < 0.3 * losses[0], "{losses:?}");
    // To the bit, with another number of threads as well.
    assert_eq!(losses, train(1));
}

#[test]
fn inference_agrees_with_training_where_statistics_do() {
    let [x, _] = pair();
    for norm in [NormKind::None, NormKind::Instance] {
        let mut net = Cnn::new(spec(norm), 1).unwrap();
        let trained = net.forward(&x).unwrap().output;
        assert_eq!(net.infer(&x).unwrap(), trained, "{norm:?}");
    }
    // Batch normalisation: after enough passes over one batch, running statistics are the batch's.
    let mut net = Cnn::new(spec(NormKind::Batch), 1).unwrap();
    let trained = (0..200).map(|_| net.forward(&x).unwrap().output).last().unwrap();
    let inferred = net.infer(&x).unwrap();
    for (a, b) in trained.data.iter().zip(&inferred.data) {
        // The unbiased variance differs by one part in the number of pixels.
        assert!((a - b).abs() < 0.05, "{a} and {b}");
    }
}
