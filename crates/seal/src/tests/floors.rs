// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images that are too old.

use std::string::ToString as _;

use crate::{Downgrade, Floor};

#[test]
fn a_host_with_keys_permits_no_downgrade_unless_configured() {
    let permits = |allow, has_keys| Floor::new(1, allow, has_keys).permits_downgrade;
    assert!(permits(None, false) && !permits(None, true));
    assert!(permits(Some(true), true) && !permits(Some(false), false));
}

#[test]
fn an_older_image_is_admitted_only_if_policy_and_operator_agree() {
    for (permits_downgrade, is_asked) in [(false, false), (false, true), (true, false), (true, true)] {
        let floor = Floor { own: 5, permits_downgrade };
        for newer in [5, 6, u32::MAX] {
            assert_eq!(floor.admit(newer, is_asked), Ok(()));
        }
        for older in [0, 4] {
            let expected = if permits_downgrade && is_asked { Ok(()) } else { Err(Downgrade { image: older, floor }) };
            assert_eq!(floor.admit(older, is_asked), expected);
        }
    }
}

#[test]
fn a_refusal_names_both_versions_and_the_way_out_where_there_is_one() {
    let refused = |permits_downgrade| Floor { own: 5, permits_downgrade }.admit(0, false).expect_err("too old");
    assert_eq!(refused(true).to_string(), "its security version is 0, and this host's is 5");
    assert!(refused(true).hint().contains("--allow-downgrade"));
    assert!(refused(false).hint().contains("permits no downgrade"));
}
