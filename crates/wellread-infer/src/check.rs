//! Outputs of all frameworks on the same images, compared.
//!
//! The reference is, of those that compute most exactly, the one that most others agree with, and the nearest to them.
//! An output whose difference from it exceeds the bound is invalid. When two outputs differ, both are, since nobody
//! knows which is right. The bound of two is that of the one that computes less exactly.

use wellread_model::infer::Dtype;

/// Largest difference allowed, relative to the largest output of the reference. Half types: PyTorch and JAX were found to
/// differ by up to 2e-3 (float16) and 2e-2 (bfloat16) on these networks. Each rounds at other places. TF32 (`tf32`)
/// keeps as many digits of float32's factors as float16 has.
pub fn bound(dtype: Dtype, tf32: bool) -> f64 {
    match dtype {
        Dtype::Float32 if !tf32 => 1e-4,
        Dtype::Float32 | Dtype::Float16 => 1e-2,
        Dtype::Bfloat16 => 5e-2,
    }
}

/// The outputs of a framework.
#[derive(Clone, Debug)]
pub struct Outputs {
    /// Name of framework and way.
    pub name: String,
    /// The numbers.
    pub values: Vec<f32>,
    /// See [`bound`].
    pub bound: f64,
}

/// The verdict of a comparison on one framework.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Largest difference from the reference, relative to its largest output; `None` for want of another framework.
    pub difference: Option<f64>,
    /// The allowed difference; `None` for the reference and for want of another framework.
    pub bound: Option<f64>,
    /// Whether its outputs may be trusted: finite, and within the bound.
    pub valid: bool,
    /// Why not.
    pub reason: Option<String>,
}

/// Compares. Returns a verdict for each, and the name of the reference.
pub fn compare(outputs: &[Outputs]) -> (Vec<Verdict>, Option<String>) {
    let bound = |a: usize, b: usize| outputs[a].bound.max(outputs[b].bound);
    let finite: Vec<bool> = outputs.iter().map(|o| o.values.iter().all(|v| v.is_finite())).collect();
    let usable: Vec<usize> = (0..outputs.len()).filter(|&i| finite[i]).collect();
    let differences = |reference: usize| -> Vec<(usize, f64)> {
        let others = usable.iter().filter(move |&&i| i != reference);
        others.map(|&i| (i, difference(&outputs[i].values, &outputs[reference].values))).collect()
    };
    // The one that agrees with most; among those, the one nearest to the ones it agrees with.
    let rank = |reference: usize| {
        let near = differences(reference).into_iter().filter(|&(i, d)| d <= bound(i, reference));
        let near: Vec<f64> = near.map(|d| d.1).collect();
        (near.len(), near.iter().sum::<f64>())
    };
    // Somebody who computes less exactly would allow all others to differ as much.
    let exact = usable.iter().map(|&i| outputs[i].bound).fold(f64::INFINITY, f64::min);
    let reference = usable.iter().copied().filter(|&i| outputs[i].bound <= exact).min_by(|&a, &b| {
        let (a, b) = (rank(a), rank(b));
        b.0.cmp(&a.0).then(a.1.total_cmp(&b.1))
    });
    let mut verdicts: Vec<Verdict> = finite
        .iter()
        .map(|&finite| Verdict {
            difference: None,
            bound: None,
            valid: finite,
            reason: (!finite).then(|| "its outputs are not finite".to_owned()),
        })
        .collect();
    let Some(reference) = reference.filter(|_| usable.len() > 1) else { return (verdicts, None) };
    let name = outputs[reference].name.clone();
    verdicts[reference].difference = Some(0.0);
    let mut agree = false;
    for (i, difference) in differences(reference) {
        let bound = bound(i, reference);
        let valid = difference <= bound;
        agree |= valid;
        let reason = (!valid).then(|| {
            format!("its outputs differ from those of {name} by {difference:.1e}, more than {bound:.0e} of the largest")
        });
        verdicts[i] = Verdict { difference: Some(difference), bound: Some(bound), valid, reason };
    }
    if !agree {
        let others: Vec<&str> =
            usable.iter().filter(|&&i| i != reference).map(|&i| outputs[i].name.as_str()).collect();
        verdicts[reference].valid = false;
        verdicts[reference].reason = Some(format!("nobody agrees with its outputs: {}", others.join(", ")));
    }
    (verdicts, Some(name))
}

/// Largest difference, relative to the largest value of the reference.
fn difference(found: &[f32], reference: &[f32]) -> f64 {
    if found.len() != reference.len() {
        return f64::INFINITY;
    }
    let largest = reference.iter().fold(0f64, |most, v| most.max(f64::from(v.abs())));
    let far = found
        .iter()
        .zip(reference)
        .fold(0f64, |most, (a, b)| most.max((f64::from(*a) - f64::from(*b)).abs()));
    if far == 0.0 { 0.0 } else { far / largest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(dtype: Dtype, values: &[(&str, [f32; 2])]) -> Vec<Outputs> {
        let one = |&(name, v): &(&str, [f32; 2])| Outputs {
            name: name.to_owned(),
            values: v.to_vec(),
            bound: bound(dtype, false),
        };
        values.iter().map(one).collect()
    }

    #[test]
    fn who_differs_from_the_rest_is_invalid() {
        let values = [("wrong", [1.0, -2.08]), ("b", [1.0, -2.0]), ("c", [1.0, -2.00001])];
        let (verdicts, reference) = compare(&named(Dtype::Float32, &values));
        assert!(matches!(reference.as_deref(), Some("b" | "c")));
        assert!(!verdicts[0].valid && verdicts[1].valid && verdicts[2].valid);
        assert!((verdicts[0].difference.unwrap() - 0.04).abs() < 1e-4);
        assert_eq!(verdicts[0].bound, Some(1e-4));
        assert!(verdicts[0].reason.as_ref().unwrap().contains("differ from"));
        assert!(compare(&named(Dtype::Bfloat16, &values)).0.iter().all(|v| v.valid));
    }

    #[test]
    fn who_computes_in_tf32_may_differ_more_and_nobody_else() {
        let values = [("tf32", [1.0, -2.01]), ("b", [1.0, -2.0]), ("c", [1.0, -2.001])];
        let mut outputs = named(Dtype::Float32, &values);
        outputs[0].bound = bound(Dtype::Float32, true);
        let (verdicts, _) = compare(&outputs);
        assert!(verdicts[0].valid, "{verdicts:?}");
        // The other two differ by 5e-4; whichever is the reference, one of them is not like it.
        assert!(!(verdicts[1].valid && verdicts[2].valid), "{verdicts:?}");
    }

    #[test]
    fn of_two_that_differ_both_are_invalid_and_one_alone_is_not_compared() {
        let (verdicts, _) = compare(&named(Dtype::Float32, &[("a", [1.0, 2.0]), ("b", [2.0, 1.0])]));
        assert!(!verdicts[0].valid && !verdicts[1].valid);
        let (verdicts, reference) = compare(&named(Dtype::Float32, &[("a", [1.0, 2.0])]));
        assert_eq!((verdicts[0].difference, verdicts[0].valid, reference), (None, true, None));
    }

    #[test]
    fn outputs_that_are_no_numbers_or_of_another_shape_are_invalid() {
        let values = [("short", [1.0, 2.0]), ("a", [1.0, 2.0]), ("b", [1.0, 2.0]), ("nan", [f32::NAN, 2.0])];
        let mut outputs = named(Dtype::Float32, &values);
        outputs[0].values.pop();
        let (verdicts, _) = compare(&outputs);
        assert_eq!(verdicts.iter().map(|v| v.valid).collect::<Vec<_>>(), [false, true, true, false]);
        assert!(verdicts[3].reason.as_ref().unwrap().contains("not finite"));
    }
}
