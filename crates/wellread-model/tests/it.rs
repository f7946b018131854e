//! The models of the loop against plain implementations in double precision, written independently from the
//! definitions. They compare forward pass, loss, and every weight after one SGD step.

use wellread_model::init::Uniform;
use wellread_model::{Device, Model, ModelOptions, NamedArray, StateDict, create, models};

const EMBEDDING: usize = 128;

fn options(in_channels: usize) -> ModelOptions {
    ModelOptions { seed: 11, threads: 2, in_channels, ..Default::default() }
}

fn pixels(count: usize, seed: u64) -> Vec<f32> {
    let mut uniform = Uniform::new(seed, 99);
    (0..count).map(|_| uniform.next_within(0.5) + 0.5).collect()
}

fn get<'a>(state: &'a StateDict, name: &str) -> &'a NamedArray {
    state.iter().find(|a| a.name == name).unwrap()
}

/// One image of `channels` planes.
#[derive(Clone)]
struct Planes {
    channels: usize,
    h: usize,
    w: usize,
    values: Vec<f64>,
}

impl Planes {
    fn zeros(channels: usize, h: usize, w: usize) -> Self {
        Self { channels, h, w, values: vec![0.0; channels * h * w] }
    }
    fn at(&self, c: usize, y: isize, x: isize) -> f64 {
        if y < 0 || x < 0 || y >= self.h as isize || x >= self.w as isize {
            return 0.0;
        }
        self.values[(c * self.h + y as usize) * self.w + x as usize]
    }
    fn add(&mut self, c: usize, y: isize, x: isize, value: f64) {
        if y >= 0 && x >= 0 && y < self.h as isize && x < self.w as isize {
            self.values[(c * self.h + y as usize) * self.w + x as usize] += value;
        }
    }
}

/// A parameter and the sum of its gradient over the batch.
struct Parameter {
    value: Vec<f64>,
    gradient: Vec<f64>,
}

impl Parameter {
    fn of(state: &StateDict, name: &str) -> Self {
        let value: Vec<f64> = get(state, name).values.iter().map(|&v| f64::from(v)).collect();
        Self { gradient: vec![0.0; value.len()], value }
    }
}

/// Convolution before the ReLU.
fn conv(x: &Planes, weight: &Parameter, bias: &Parameter) -> Planes {
    let mut y = Planes::zeros(bias.value.len(), x.h, x.w);
    for o in 0..y.channels {
        for r in 0..x.h as isize {
            for c in 0..x.w as isize {
                let mut sum = bias.value[o];
                for i in 0..x.channels {
                    for ky in 0..3 {
                        for kx in 0..3 {
                            let w = weight.value[((o * x.channels + i) * 3 + ky) * 3 + kx];
                            sum += w * x.at(i, r + ky as isize - 1, c + kx as isize - 1);
                        }
                    }
                }
                y.add(o, r, c, sum);
            }
        }
    }
    y
}

/// Adds to the gradients of weight and bias; returns the gradient of `x`.
fn conv_backward(x: &Planes, weight: &mut Parameter, bias: &mut Parameter, gradient: &Planes) -> Planes {
    let mut back = Planes::zeros(x.channels, x.h, x.w);
    for o in 0..gradient.channels {
        for r in 0..x.h as isize {
            for c in 0..x.w as isize {
                let g = gradient.at(o, r, c);
                bias.gradient[o] += g;
                for i in 0..x.channels {
                    for ky in 0..3 {
                        for kx in 0..3 {
                            let (yy, xx) = (r + ky as isize - 1, c + kx as isize - 1);
                            let at = ((o * x.channels + i) * 3 + ky) * 3 + kx;
                            weight.gradient[at] += g * x.at(i, yy, xx);
                            back.add(i, yy, xx, g * weight.value[at]);
                        }
                    }
                }
            }
        }
    }
    back
}

fn relu(x: &Planes) -> Planes {
    let mut y = x.clone();
    y.values.iter_mut().for_each(|v| *v = v.max(0.0));
    y
}

/// Zeroes the gradient where the ReLU's input was not positive.
fn relu_backward(before: &Planes, mut gradient: Planes) -> Planes {
    for (g, &b) in gradient.values.iter_mut().zip(&before.values) {
        if b <= 0.0 {
            *g = 0.0;
        }
    }
    gradient
}

/// Embeddings, loss against the documented target, and all parameters after one step of SGD at 0.01.
fn reference(state: &StateDict, batch: &[f32], [n, ch, h, w]: [usize; 4]) -> (Vec<f64>, f64, Vec<Vec<f64>>) {
    let mut p: Vec<Parameter> =
        ["conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc.weight", "fc.bias"]
            .iter()
            .map(|name| Parameter::of(state, name))
            .collect();
    let mut uniform = Uniform::new(options(ch).seed, 1000);
    let matrix: Vec<f64> = (0..ch * EMBEDDING).map(|_| f64::from(uniform.next_within(1.0))).collect();
    let (mut embeddings, mut loss) = (vec![], 0.0);
    for image in batch.chunks_exact(ch * h * w) {
        let values = image.iter().map(|&v| f64::from(v)).collect();
        let x = Planes { channels: ch, h, w, values };
        let before1 = conv(&x, &p[0], &p[1]);
        let after1 = relu(&before1);
        let before2 = conv(&after1, &p[2], &p[3]);
        let after2 = relu(&before2);
        let area = (h * w) as f64;
        let mean = |planes: &Planes, c: usize| planes.values[c * h * w..][..h * w].iter().sum::<f64>() / area;
        let pooled: Vec<f64> = (0..after2.channels).map(|c| mean(&after2, c)).collect();
        let mut pooled_gradient = vec![0.0; pooled.len()];
        for o in 0..EMBEDDING {
            let sum: f64 = (0..pooled.len()).map(|i| p[4].value[o * pooled.len() + i] * pooled[i]).sum();
            let embedding = sum + p[5].value[o];
            let target: f64 = (0..ch).map(|c| mean(&x, c) * matrix[c * EMBEDDING + o]).sum();
            let difference = embedding - target;
            embeddings.push(embedding);
            loss += difference * difference / (n * EMBEDDING) as f64;
            let g = 2.0 * difference / (n * EMBEDDING) as f64;
            p[5].gradient[o] += g;
            for i in 0..pooled.len() {
                p[4].gradient[o * pooled.len() + i] += g * pooled[i];
                pooled_gradient[i] += g * p[4].value[o * pooled.len() + i];
            }
        }
        let mut gradient = Planes::zeros(after2.channels, h, w);
        for (c, plane) in gradient.values.chunks_exact_mut(h * w).enumerate() {
            plane.fill(pooled_gradient[c] / area);
        }
        let gradient = relu_backward(&before2, gradient);
        let (first, second) = p.split_at_mut(2);
        let (weight, bias) = second.split_at_mut(1);
        let gradient = conv_backward(&after1, &mut weight[0], &mut bias[0], &gradient);
        let gradient = relu_backward(&before1, gradient);
        let (weight, bias) = first.split_at_mut(1);
        conv_backward(&x, &mut weight[0], &mut bias[0], &gradient);
    }
    let stepped =
        p.iter().map(|p| p.value.iter().zip(&p.gradient).map(|(v, g)| v - 0.01 * g).collect()).collect();
    (embeddings, loss, stepped)
}

#[test]
fn forward_and_one_step_agree_with_the_plain_implementation() {
    let models: [(&str, Reference); 2] = [("small-cnn", reference), ("linear-probe", reference_probe)];
    for ((name, reference), shape) in models
        .iter()
        .flat_map(|m| [[2, 1, 9, 14], [1, 3, 20, 7], [3, 2, 1, 1], [2, 1, 24, 50]].map(|s| (m, s)))
    {
        let mut model = create(name, &options(shape[1])).unwrap();
        let batch = pixels(shape.iter().product(), 5);
        let state = model.state_dict().unwrap();
        let (embeddings, loss, stepped) = reference(&state, &batch, shape);

        let output = model.forward(&batch, shape).unwrap();
        assert_eq!((output.rows(), output.width()), (shape[0], EMBEDDING));
        for (ours, theirs) in output.as_slice().iter().zip(&embeddings) {
            assert!((f64::from(*ours) - theirs).abs() < 1e-5, "{ours} against {theirs} for {shape:?}");
        }

        let ours = model.train_step(&batch, shape).unwrap();
        assert!((f64::from(ours) - loss).abs() < 1e-5 * loss.max(1.0), "loss {ours} against {loss}");
        let mut moved = 0;
        for ((before, after), expected) in state.iter().zip(&model.state_dict().unwrap()).zip(&stepped) {
            moved += before.values.iter().zip(&after.values).filter(|(b, a)| b != a).count();
            for ((b, a), e) in before.values.iter().zip(&after.values).zip(expected) {
                // Compared as steps, not as weights: a wrong gradient must not hide behind a large weight.
                let (ours, theirs) = (f64::from(*a) - f64::from(*b), e - f64::from(*b));
                assert!(
                    (ours - theirs).abs() < 3e-8 + 1e-3 * theirs.abs(),
                    "{}: {ours} against {theirs}",
                    after.name
                );
            }
        }
        assert!(moved > 1000, "only {moved} weights moved");
    }
}

/// Embeddings, loss and all parameters of the linear probe after one step of SGD at 0.01.
fn reference_probe(
    state: &StateDict,
    batch: &[f32],
    [n, ch, h, w]: [usize; 4],
) -> (Vec<f64>, f64, Vec<Vec<f64>>) {
    let mut weight = Parameter::of(state, "fc.weight");
    let mut bias = Parameter::of(state, "fc.bias");
    let mut uniform = Uniform::new(options(ch).seed, 1000);
    let matrix: Vec<f64> = (0..ch * EMBEDDING).map(|_| f64::from(uniform.next_within(1.0))).collect();
    let (mut embeddings, mut loss) = (vec![], 0.0);
    for image in batch.chunks_exact(ch * h * w) {
        let at = |c: usize, y: usize, x: usize| f64::from(image[(c * h + y) * w + x]);
        let mut cells = vec![];
        for c in 0..ch {
            for i in 0..8 {
                for j in 0..8 {
                    // As PyTorch's documentation of adaptive pooling has it.
                    let ends = |k: usize, length: usize| {
                        let at = |k: usize| k as f64 * length as f64 / 8.0;
                        at(k).floor() as usize..at(k + 1).ceil() as usize
                    };
                    let (rows, columns) = (ends(i, h), ends(j, w));
                    let count = (rows.len() * columns.len()) as f64;
                    let values = rows.flat_map(|y| columns.clone().map(move |x| at(c, y, x)));
                    cells.push(values.sum::<f64>() / count);
                }
            }
        }
        for o in 0..EMBEDDING {
            let row = &weight.value[o * cells.len()..][..cells.len()];
            let embedding = bias.value[o] + row.iter().zip(&cells).map(|(w, x)| w * x).sum::<f64>();
            let mean = |c: usize| (0..h * w).map(|i| at(c, i / w, i % w)).sum::<f64>() / (h * w) as f64;
            let difference = embedding - (0..ch).map(|c| mean(c) * matrix[c * EMBEDDING + o]).sum::<f64>();
            embeddings.push(embedding);
            loss += difference * difference / (n * EMBEDDING) as f64;
            let g = 2.0 * difference / (n * EMBEDDING) as f64;
            bias.gradient[o] += g;
            for (i, cell) in cells.iter().enumerate() {
                weight.gradient[o * cells.len() + i] += g * cell;
            }
        }
    }
    let step = |p: Parameter| p.value.iter().zip(&p.gradient).map(|(v, g)| v - 0.01 * g).collect();
    (embeddings, loss, vec![step(weight), step(bias)])
}

type Reference = fn(&StateDict, &[f32], [usize; 4]) -> (Vec<f64>, f64, Vec<Vec<f64>>);

#[test]
fn the_losses_fall() {
    for entry in models() {
        let mut model = create(entry.name, &options(1)).unwrap();
        let shape = [4, 1, 24, 24];
        let batch = pixels(shape.iter().product(), 1);
        let losses: Vec<f32> = (0..100).map(|_| model.train_step(&batch, shape).unwrap()).collect();
        assert!(losses.windows(2).all(|pair| pair[1] < pair[0]), "{}: {losses:?}", entry.name);
        assert!(losses[99] < 0.93 * losses[0], "{}: {losses:?}", entry.name);
    }
}

#[test]
fn a_seed_gives_the_same_weights_losses_and_outputs_whatever_the_threads() {
    for entry in models() {
        threads_change_nothing(entry.name);
    }
}

fn threads_change_nothing(name: &str) {
    let run = |seed, threads| {
        let mut model = create(name, &ModelOptions { seed, threads, ..options(2) }).unwrap();
        let shape = [3, 2, 30, 17];
        let batch = pixels(shape.iter().product(), 8);
        let losses: Vec<f32> = (0..3).map(|_| model.train_step(&batch, shape).unwrap()).collect();
        (losses, model.forward(&batch, shape).unwrap(), model.state_dict().unwrap())
    };
    assert_eq!(run(3, 1), run(3, 4));
    assert_ne!(run(3, 1).2, run(4, 1).2);
}

#[test]
fn weights_travel_between_models() {
    let shape = [1, 1, 12, 12];
    let batch = pixels(144, 2);
    let mut first = create("small-cnn", &options(1)).unwrap();
    let mut second = create("small-cnn", &ModelOptions { seed: 12, ..options(1) }).unwrap();
    let expected = first.forward(&batch, shape).unwrap();
    assert_ne!(second.forward(&batch, shape).unwrap(), expected);

    let state = first.state_dict().unwrap();
    let refused = |model: &mut dyn Model, change: &dyn Fn(&mut StateDict), cause: &str| {
        let mut bad = state.clone();
        change(&mut bad);
        let before = model.state_dict().unwrap();
        let error = model.load_state_dict(&bad).unwrap_err();
        assert!(error.cause().contains(cause), "{error}");
        assert_eq!(model.state_dict().unwrap(), before);
    };
    refused(second.as_mut(), &|s| s.truncate(5), "fc.bias is missing");
    refused(second.as_mut(), &|s| s[0].shape = vec![32, 2, 3, 3], "conv1.weight has shape");
    refused(second.as_mut(), &|s| s[5].values.clear(), "0 values");
    refused(
        second.as_mut(),
        &|s| s.push(NamedArray { name: "bn.weight".into(), shape: vec![], values: vec![] }),
        "no parameter bn.weight",
    );

    second.load_state_dict(&state).unwrap();
    assert_eq!(second.forward(&batch, shape).unwrap(), expected);
}

#[test]
fn the_registry_names_what_there_is() {
    let names: Vec<_> = models().iter().map(|m| m.name).collect();
    assert_eq!(names, ["linear-probe", "small-cnn"]);
    assert!(models().iter().all(|m| !m.about.is_empty()));
    let light = create("linear-probe", &options(3)).unwrap();
    assert_eq!((light.name(), light.parameters()), ("linear-probe", 128 * 3 * 64 + 128));
    let model = create("small-cnn", &options(1)).unwrap();
    assert_eq!((model.name(), model.parameters()), ("small-cnn", 27_136));
    assert!(model.backend().starts_with("wellread's own kernels, ") && model.backend().contains("2 threads"));
    let error = create("large-cnn", &options(1)).err().unwrap();
    assert!(error.hint_text().unwrap().contains("small-cnn"), "{error}");
    assert!(create("small-cnn", &options(0)).is_err());
    assert_eq!(create("small-cnn", &options(5)).unwrap().parameters(), 27_136 + 4 * 32 * 9);
}

/// Multiplications by weights that one image of so many pixels takes: a convolution's weights are used at every pixel, a
/// linear layer's once.
fn multiplications(state: &StateDict, pixels: usize) -> usize {
    let of = |array: &NamedArray| match array.shape.len() {
        4 => array.values.len() * pixels,
        2 => array.values.len(),
        _ => 0,
    };
    state.iter().map(of).sum()
}

/// The default of the `loop` benchmark is light, so that formats differ there. It has fewer weights than upstream's
/// model, a thousandth of its multiplications, and no more of them for larger images.
#[test]
fn the_default_model_is_light() {
    assert_eq!(models()[0].name, "linear-probe", "the first is the default");
    for channels in [1, 3] {
        let light = create("linear-probe", &options(channels)).unwrap();
        let heavy = create("small-cnn", &options(channels)).unwrap();
        assert!(light.parameters() < heavy.parameters(), "{channels} channels");
        let (light, heavy) = (light.state_dict().unwrap(), heavy.state_dict().unwrap());
        let small = multiplications(&light, 100 * 100);
        assert_eq!(small, EMBEDDING * channels * 64);
        assert_eq!(multiplications(&light, 1080 * 1080), small);
        let convolutions = 9 * 32 * channels + 9 * 32 * 64;
        assert_eq!(multiplications(&heavy, 100 * 100), convolutions * 100 * 100 + 64 * EMBEDDING);
        assert!(1000 * small < multiplications(&heavy, 100 * 100), "{channels} channels");
    }
}

#[test]
fn bad_batches_and_divergence_are_errors() {
    for entry in models() {
        let mut model = create(entry.name, &options(1)).unwrap();
        assert!(model.forward(&[0.0; 10], [1, 1, 3, 3]).is_err());
        assert!(model.forward(&[], [0, 1, 3, 3]).is_err());
        assert!(model.forward(&[0.0; 18], [1, 2, 3, 3]).is_err());
        let error = model.train_step(&[f32::NAN; 9], [1, 1, 3, 3]).unwrap_err();
        assert!(error.cause().contains("diverged"), "{error}");
    }
}

#[cfg(not(feature = "cuda"))]
#[test]
fn a_gpu_that_is_not_there_is_an_error_with_a_hint() {
    let error = create("small-cnn", &ModelOptions { device: Device::Cuda(0), ..options(1) }).err().unwrap();
    assert!(error.hint_text().unwrap().contains("feature `cuda`"), "{error}");
}
