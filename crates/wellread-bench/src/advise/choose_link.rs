//! The rules by which predictions over a link become a recommendation: what the set is to be kept as in the place where it is.
//!
//! ```text
//!  over_link: images per second of each way, all over the same link ─▶ the fastest, and those within 5 % of it
//!       └ upper bounds: no reason for a copy            └─▶ the set as it is, or the smallest where that is much smaller
//! ```

use super::advice::{CropAdvice, LinkAdvice, LinkPrediction};
use super::candidates::Candidate;
use super::choose::{Choice, ChoiceContext, SAME_SIZE};
use super::copy_reasons::{MAX_COPY_SIZE_SHARE, size_reason, time_to_convert};
use super::crops;
use crate::core::words::number;
use wellread_measure::compare::DEFAULT_THRESHOLD;
use wellread_store::words::plural;

/// Chooses among the candidates of a set behind a link; the first is the set as it is.
pub(super) fn format(all: &[Candidate], link: &LinkAdvice, need: ChoiceContext) -> Choice {
    let predicted = |at: usize| {
        let name = all[at].name();
        link.predictions.iter().find(|one| one.name == name)
    };
    let stays =
        |why: String| Choice { index: 0, reasons: vec![format!("{}: it stays: {why}", all[0].name())] };
    let Some(own) = predicted(0) else {
        return stays("its time over the link is not known".to_owned());
    };
    let measured: Vec<(usize, &LinkPrediction)> = (0..all.len())
        .filter_map(|at| predicted(at).map(|one| (at, one)))
        .filter(|(_, one)| !one.at_most)
        .collect();
    let best = measured.iter().max_by(|a, b| a.1.images_per_s.total_cmp(&b.1.images_per_s));
    let Some(&(best, fastest)) = best else {
        return stays("no copy has a time over the link that is more than an upper bound".to_owned());
    };
    let is_as_fast =
        |one: &LinkPrediction| one.images_per_s * (1.0 + DEFAULT_THRESHOLD) >= fastest.images_per_s;
    let is_enough = |one: &LinkPrediction| need.enough.is_some_and(|enough| 1.0 / one.images_per_s < enough);
    let eligible = measured.iter().filter(|(_, one)| is_as_fast(one) || is_enough(one));
    let eligible: Vec<(usize, &LinkPrediction)> = eligible.copied().collect();
    let bytes = |at: usize| all[at].bytes_per_image * need.images as f64;
    let least = eligible.iter().map(|(at, _)| bytes(*at)).fold(f64::INFINITY, f64::min);
    let small = eligible.iter().filter(|(at, _)| bytes(*at) <= SAME_SIZE * least);
    let small = small.max_by(|a, b| a.1.images_per_s.total_cmp(&b.1.images_per_s));
    let &(small, of_small) = small.unwrap_or(&(best, fastest));
    // An upper bound that is as fast does not show that a copy is faster.
    let may_stay = is_as_fast(own) || (is_enough(own) && !own.at_most);
    let is_kept = small == 0 || (may_stay && bytes(small) > MAX_COPY_SIZE_SHARE * bytes(0));
    let (index, chosen) = if is_kept { (0, own) } else { (small, of_small) };
    let things = plural(need.thing);
    let rate = |one: &LinkPrediction| {
        let bound = if one.at_most { "at most " } else { "" };
        format!("{bound}{} {things}/s over the link", number(one.images_per_s))
    };
    let mut reasons =
        vec![format!("{}: {}, predicted (bound by {})", all[index].name(), rate(chosen), chosen.bound_by)];
    if index != 0 {
        reasons.push(format!("the set {}: {}", all[0].name(), rate(own)));
    }
    if index != best {
        let name = all[best].name();
        let beside = if chosen.at_most {
            format!("the fastest without an upper bound is {name}: {}", rate(fastest))
        } else if is_as_fast(chosen) {
            format!("the fastest is {name}: {}", rate(fastest))
        } else {
            format!(
                "the fastest is {name} ({}), but a batch of this is read within the step too",
                rate(fastest)
            )
        };
        reasons.push(beside);
    }
    reasons.push(size_reason(|i| &all[i], (index, small), (need.images, need.thing)));
    reasons.extend(time_to_convert(&all[index], need.images, "reading the set and sending the copy"));
    Choice { index, reasons }
}

/// Whether a copy of crops is predicted to be faster over the link than the best way of cutting them out. The difference has to be worth
/// a copy.
pub(super) fn beats_crops(link: &LinkAdvice, copy: &Candidate, crops: &CropAdvice) -> bool {
    let name = copy.name();
    let predicted = link.predictions.iter().find(|one| one.name == name && !copy.is_own_set());
    let measured = crops.tried.iter().map(|one| one.cells_per_s.value).fold(0.0, f64::max);
    predicted.is_some_and(|one| one.images_per_s > measured * (1.0 + crops::NEGLIGIBLE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::LinkSpeed;
    use wellread_store::Compression;

    /// The choice among sets of these formats, the first as it is. With each go bytes of an image, images per second over the link, and
    /// whether that is an upper bound.
    fn chosen(ways: &[(&'static str, f64, f64, bool)], enough: Option<f64>) -> (usize, String) {
        let all: Vec<Candidate> = ways
            .iter()
            .enumerate()
            .map(|(at, &(format, bytes_per_image, ..))| Candidate {
                bytes_per_image,
                ..Candidate::sample(format, (at > 0).then_some(Compression::Lz4))
            })
            .collect();
        let predictions =
            all.iter().zip(ways).filter(|(_, way)| way.2 > 0.0).map(|(candidate, way)| LinkPrediction {
                name: candidate.name(),
                requests_per_epoch: 100.0,
                bytes_per_epoch: 1e4,
                images_per_s: way.2,
                at_most: way.3,
                bound_by: "latency",
                cost_per_epoch: None,
            });
        let link = LinkAdvice { link: LinkSpeed::sample(), predictions: predictions.collect() };
        let need = ChoiceContext { images: 100, thing: "image", memory: None, enough, screened: None };
        let choice = format(&all, &link, need);
        (choice.index, choice.reasons.join("; "))
    }

    #[test]
    fn the_fastest_over_the_link_is_chosen_and_of_equals_the_smallest() {
        let ways =
            [("tiff", 100.0, 50.0, false), ("parquet", 90.0, 400.0, false), ("lance", 60.0, 390.0, false)];
        let (index, said) = chosen(&ways, None);
        assert_eq!(index, 2, "{said}");
        assert!(
            said.starts_with("lance (lz4): 390 images/s over the link, predicted (bound by latency)"),
            "{said}"
        );
        assert!(said.contains("the set as it is (tiff, lz4): 50.0 images/s over the link"), "{said}");
        // All are read within the step.
        assert_eq!(chosen(&ways[..2], Some(1.0)).0, 0);
        let (index, said) =
            chosen(&[("tiff", 100.0, 395.0, false), ways[1], ("lance", 80.0, 390.0, false)], None);
        assert!(index == 0 && said.contains("a copy is worth making below 70"), "{said}");
    }

    /// Upper bounds stood among the others, and the set as it is was never bound by decoding.
    #[test]
    fn an_upper_bound_is_no_reason_for_a_copy() {
        let measured = ("parquet", 90.0, 400.0, false);
        let (index, said) =
            chosen(&[("tiff", 100.0, 50.0, false), measured, ("lance", 10.0, 900.0, true)], None);
        assert_eq!(index, 1, "{said}");
        // It does not show that the set as it is is slower, either.
        let (index, said) = chosen(&[("tiff", 100.0, 900.0, true), measured], None);
        assert!(index == 0 && said.contains("at most 900 images/s over the link"), "{said}");
        // One below the others shows that it is.
        assert_eq!(chosen(&[("tiff", 100.0, 50.0, true), measured], None).0, 1);
        for ways in [
            [("tiff", 100.0, 0.0, false), measured],
            [("tiff", 100.0, 9.0, true), ("lance", 10.0, 9.0, true)],
        ] {
            let (index, said) = chosen(&ways, None);
            assert!(index == 0 && said.contains("it stays"), "{said}");
        }
    }
}
