//! Outputs of all frameworks on the same images, compared.
//!
//! The reference is the one that most others agree with, and the nearest to them. Whose difference from it exceeds the bound of the type is
//! invalid; of two that differ, both are, since nobody knows which is right.

use wellread_model::infer::Dtype;

/// Largest difference allowed, relative to the largest output of the reference. Half types: PyTorch and JAX were found to
/// differ by up to 2e-3 (float16) and 2e-2 (bfloat16) on these networks, since each rounds at other places.
pub fn bound(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::Float32 => 1e-4,
        Dtype::Float16 => 1e-2,
        Dtype::Bfloat16 => 5e-2,
    }
}

/// What a comparison says of one framework.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Largest difference from the reference, relative to its largest output; `None` for want of another framework.
    pub difference: Option<f64>,
    /// Whether its outputs may be trusted: finite, and within the bound.
    pub valid: bool,
    /// Why not.
    pub reason: Option<String>,
}

/// Compares; `outputs` are named. Returns a verdict for each, and the name of the reference.
pub fn compare(outputs: &[(String, Vec<f32>)], dtype: Dtype) -> (Vec<Verdict>, Option<String>) {
    let bound = bound(dtype);
    let finite: Vec<bool> = outputs.iter().map(|(_, values)| values.iter().all(|v| v.is_finite())).collect();
    let usable: Vec<usize> = (0..outputs.len()).filter(|&i| finite[i]).collect();
    let differences = |reference: usize| -> Vec<(usize, f64)> {
        let others = usable.iter().filter(move |&&i| i != reference);
        others.map(|&i| (i, difference(&outputs[i].1, &outputs[reference].1))).collect()
    };
    // Whoever agrees with most; of those, whoever is nearest to the ones it agrees with.
    let rank = |reference: usize| {
        let near: Vec<f64> = differences(reference).iter().map(|d| d.1).filter(|d| *d <= bound).collect();
        (near.len(), near.iter().sum::<f64>())
    };
    let reference = usable.iter().copied().min_by(|&a, &b| {
        let (a, b) = (rank(a), rank(b));
        b.0.cmp(&a.0).then(a.1.total_cmp(&b.1))
    });
    let mut verdicts: Vec<Verdict> = finite
        .iter()
        .map(|&finite| Verdict {
            difference: None,
            valid: finite,
            reason: (!finite).then(|| "its outputs are not finite".to_owned()),
        })
        .collect();
    let Some(reference) = reference.filter(|_| usable.len() > 1) else { return (verdicts, None) };
    let name = outputs[reference].0.clone();
    verdicts[reference].difference = Some(0.0);
    let mut agree = false;
    for (i, difference) in differences(reference) {
        let valid = difference <= bound;
        agree |= valid;
        let reason = (!valid).then(|| {
            format!("its outputs differ from those of {name} by {difference:.1e}, more than {bound:.0e} of the largest")
        });
        verdicts[i] = Verdict { difference: Some(difference), valid, reason };
    }
    if !agree {
        let others: Vec<&str> =
            usable.iter().filter(|&&i| i != reference).map(|&i| outputs[i].0.as_str()).collect();
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

    fn named(values: &[(&str, [f32; 2])]) -> Vec<(String, Vec<f32>)> {
        values.iter().map(|(name, v)| ((*name).to_owned(), v.to_vec())).collect()
    }

    #[test]
    fn who_differs_from_the_rest_is_invalid() {
        let outputs = named(&[("wrong", [1.0, -2.08]), ("b", [1.0, -2.0]), ("c", [1.0, -2.00001])]);
        let (verdicts, reference) = compare(&outputs, Dtype::Float32);
        assert!(matches!(reference.as_deref(), Some("b" | "c")));
        assert!(!verdicts[0].valid && verdicts[1].valid && verdicts[2].valid);
        assert!((verdicts[0].difference.unwrap() - 0.04).abs() < 1e-4);
        assert!(verdicts[0].reason.as_ref().unwrap().contains("differ from"));
        assert!(compare(&outputs, Dtype::Bfloat16).0.iter().all(|v| v.valid));
    }

    #[test]
    fn of_two_that_differ_both_are_invalid_and_one_alone_is_not_compared() {
        let (verdicts, _) = compare(&named(&[("a", [1.0, 2.0]), ("b", [2.0, 1.0])]), Dtype::Float32);
        assert!(!verdicts[0].valid && !verdicts[1].valid);
        let (verdicts, reference) = compare(&named(&[("a", [1.0, 2.0])]), Dtype::Float32);
        assert_eq!((verdicts[0].difference, verdicts[0].valid, reference), (None, true, None));
    }

    #[test]
    fn outputs_that_are_no_numbers_or_of_another_shape_are_invalid() {
        let mut outputs = named(&[("a", [1.0, 2.0]), ("b", [1.0, 2.0]), ("nan", [f32::NAN, 2.0])]);
        outputs.insert(0, ("short".to_owned(), vec![1.0]));
        let (verdicts, _) = compare(&outputs, Dtype::Float32);
        assert_eq!(verdicts.iter().map(|v| v.valid).collect::<Vec<_>>(), [false, true, true, false]);
        assert!(verdicts[3].reason.as_ref().unwrap().contains("not finite"));
    }
}
