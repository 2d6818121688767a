// SPDX-License-Identifier: MIT OR Apache-2.0
//! From OpenMetrics to the text format that was before it, which `promtool check metrics` and older scrapers read.
//! There a counter's suffix is part of its name, and there are no units and no infos.

/// Rewrites the lines that describe metrics; those with values are the same in both.
pub(super) fn from_open_metrics(text: &str) -> String {
    let mut old = String::with_capacity(text.len());
    let mut help = None;
    for line in text.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            help = described.split_once(' ').map(|(_, help)| help);
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|typed| typed.split_once(' ')) {
            let (name, kind) = match kind {
                "counter" => (format!("{name}_total"), kind),
                "info" => (format!("{name}_info"), "gauge"),
                _ => (name.to_owned(), kind),
            };
            let help = help.take().unwrap_or_default();
            old += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        } else if !line.starts_with('#') {
            old += line;
            old.push('\n');
        }
    }
    old
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counters_suffix_is_part_of_its_name_and_units_are_left_out() {
        let new = "# HELP a_seconds Time.\n# TYPE a_seconds counter\n# UNIT a_seconds seconds\na_seconds_total 1\n\
                   # HELP b Text.\n# TYPE b info\nb_info{c=\"d\"} 1\n# HELP e More.\n# TYPE e gauge\ne 2\n# EOF\n";
        let old = "# HELP a_seconds_total Time.\n# TYPE a_seconds_total counter\na_seconds_total 1\n\
                   # HELP b_info Text.\n# TYPE b_info gauge\nb_info{c=\"d\"} 1\n# HELP e More.\n# TYPE e gauge\ne 2\n";
        assert_eq!(from_open_metrics(new), old);
    }
}
