// SPDX-License-Identifier: MIT OR Apache-2.0
//! The little arithmetic that figures need.

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
    fn ratios_are_of_neighbours() {
        assert_eq!(ratios(&[4.0, 9.0, 1.0], &[2.0, 3.0]), [2.0, 3.0]);
    }

    #[test]
    fn values_are_rounded_to_three_decimals() {
        assert_eq!(rounded(1.23456), 1.235);
        assert_eq!(rounded(318.0), 318.0);
    }
}
