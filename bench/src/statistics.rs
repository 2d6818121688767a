// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arithmetic of figures.

/// The confidence of a bound.
const CONFIDENCE: f64 = 0.95;

/// The middle value; of an even number of values the mean of the middle two. `None` of none.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// The upper end of a one-sided confidence interval of 95 % for the median of what `values` are a sample of: the order
/// statistic below which the true median lies in 95 of 100 samples, whatever the distribution. Of fewer than five
/// values, which bound nothing so surely, the largest. `None` of none.
pub fn median_at_most(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    // The median is above the k-th smallest of n values only where at least k of them are below it: binomial, p = 1/2.
    let (mut ways, mut below, all) = (1.0, 0.0, 2.0_f64.powi(sorted.len() as i32));
    for (taken, value) in sorted.iter().enumerate() {
        below += ways;
        if below / all >= CONFIDENCE {
            return Some(*value);
        }
        ways *= (sorted.len() - taken) as f64 / (taken + 1) as f64;
    }
    sorted.last().copied()
}

/// The quotients of runs that were made one beside the other: a machine that was slow for both cancels out.
pub fn ratios(numerators: &[f64], denominators: &[f64]) -> Vec<f64> {
    numerators.iter().zip(denominators).map(|(numerator, denominator)| numerator / denominator).collect()
}

/// The value to three decimals: more is noise, and long to read.
pub fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 100.0]), Some(3.0));
    }

    #[test]
    fn a_medians_bound_is_the_order_statistic_of_tables() {
        // Sums of binomial coefficients: 31/32 for the 5th of 5, 502/512 for the 8th of 9, 0.982 for the 12th of 15.
        for (count, rank) in [(1, 1), (4, 4), (5, 5), (9, 8), (15, 12)] {
            let values: Vec<f64> = (1..=count).rev().map(f64::from).collect();
            assert_eq!(median_at_most(&values), Some(f64::from(rank)), "{count} values");
        }
        assert_eq!(median_at_most(&[]), None);
    }

    #[test]
    fn ratios_are_of_neighbours() {
        assert_eq!(ratios(&[4.0, 9.0, 1.0], &[2.0, 3.0]), [2.0, 3.0]);
    }

    #[test]
    fn values_are_rounded_to_three_decimals() {
        assert_eq!(rounded(1.23456), 1.235);
        assert_eq!(rounded(318.0), 318.0);
    }
}
