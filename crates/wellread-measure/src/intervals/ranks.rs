//! Between which samples a percentile lies: the distribution of a resample's percentile, written down.

/// Where in `n` sorted samples, counted from 0, the end of an interval stands below which the percentile `q` lies with
/// probability `tail`. The other end is the same place from above, of `1 - q`.
///
/// The sample of rank `r` (from 1) lies above the percentile where fewer than `r` of `n` samples are below it.
/// This is a binomial probability, whatever the distribution. Between the two ranks that enclose `tail`, the place is that of
/// Hettmansperger and Sheather (1986), in Nyblom's form (1992) for any percentile. It is the first sample where even
/// that lies above the percentile too often.
pub(super) fn lower_end(n: usize, q: f64, tail: f64) -> f64 {
    if q <= 0.0 {
        return 0.0;
    }
    if q >= 1.0 {
        return (n - 1) as f64;
    }
    let size = n as f64;
    // Ten standard deviations further down there is nothing that counts.
    let first = (size * q - 10.0 * (size * q * (1.0 - q)).sqrt() - 10.0).max(0.0).floor();
    let ways = libm::lgamma(size + 1.0) - libm::lgamma(first + 1.0) - libm::lgamma(size - first + 1.0);
    let mut probability = (ways + first * q.ln() + (size - first) * (1.0 - q).ln()).exp();
    let (mut below, mut rank) = (0.0, first);
    while below + probability <= tail && rank < size {
        below += probability;
        probability *= (size - rank) / (rank + 1.0) * q / (1.0 - q);
        rank += 1.0;
    }
    if rank == 0.0 {
        return 0.0;
    }
    let (short, over) = (tail - below, below + probability - tail);
    let share = 1.0 / (1.0 + rank * (1.0 - q) * over / ((size - rank) * q * short));
    rank - 1.0 + share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_binomial_distribution() {
        // The smallest of six samples is above the median with 1/64, the second with 7/64.
        let place = lower_end(6, 0.5, 0.025);
        assert!((place - 0.357_142_857).abs() < 1e-6, "{place}");
        // A probability that a rank has exactly is that rank.
        assert!((lower_end(6, 0.5, 7.0 / 64.0) - 1.0).abs() < 1e-9);
        // Below six samples, and for a high percentile from above, there is no such rank.
        assert_eq!(lower_end(5, 0.5, 0.025), 0.0);
        assert_eq!((lower_end(71, 0.05, 0.025), lower_end(367, 0.01, 0.025)), (0.0, 0.0));
        // The first rank that exists: 0.95^72 is 2.489 %, and 0.99^368 is 2.476 %.
        for (n, q) in [(72, 0.05), (368, 0.01)] {
            let place = lower_end(n, q, 0.025);
            assert!(place > 0.0 && place < 0.02, "{n} {q}: {place}");
            assert!(lower_end(n + 1, q, 0.025) > place, "{n} {q}");
        }
        assert_eq!((lower_end(9, 0.0, 0.025), lower_end(9, 1.0, 0.025)), (0.0, 8.0));
    }

    #[test]
    fn many_samples_follow_the_normal_distribution() {
        for (n, q) in [(10_001, 0.5), (1_000_000, 0.5), (1_000_000, 0.99)] {
            let size = n as f64;
            let normal = size * q - 1.959_964 * (size * q * (1.0 - q)).sqrt();
            let place = lower_end(n, q, 0.025);
            assert!((place - normal).abs() < 2.0, "{n} {q}: {place}, {normal}");
        }
    }
}
