// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec::Vec;

use super::*;

#[test]
fn a_newer_setting_is_alone_in_the_first_request() {
    let newer = VmSettings { cap_percent: Some(50), memory_max_bytes: Some(1 << 30), ..VmSettings::default() };
    let both = VmSettings { weight: Some(1), ..newer.clone() };
    let requests: Vec<_> = both.in_requests().collect();
    let rest = VmSettings { weight: Some(1), ..VmSettings::default() };
    assert_eq!(requests, [newer.clone(), rest.clone()]);
    assert_eq!(newer.clone().in_requests().collect::<Vec<_>>(), [newer]);
    assert_eq!(rest.clone().in_requests().collect::<Vec<_>>(), [rest]);
    assert_eq!(VmSettings::default().in_requests().count(), 0);
}
