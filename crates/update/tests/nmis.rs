// SPDX-License-Identifier: MIT OR Apache-2.0
//! The NMIs that an image claims, in virtual time.

use update::nmi::{Claim, ExpectedNmis};

mod virtual_time;

use virtual_time::at;

const NO: Claim = Claim { is_expected: false, arm_again_us: None };
const YES: Claim = Claim { is_expected: true, arm_again_us: None };

#[test]
fn an_nmi_is_expected_for_a_second_after_it_was_sent() {
    let nmis = ExpectedNmis::new();
    assert_eq!(nmis.claim(true, &at(0)), NO);
    nmis.expect(&at(10));
    assert_eq!(nmis.claim(false, &at(1_000_009)), YES);
    assert_eq!(nmis.claim(false, &at(1_000_010)), NO);
}

#[test]
fn each_nmi_on_the_leader_arms_the_watchdog_again_until_it_is_disarmed() {
    let nmis = ExpectedNmis::default();
    nmis.arm(5_000, &at(0));
    assert_eq!(nmis.claim(false, &at(1_004_999)), YES);
    assert_eq!(nmis.claim(false, &at(1_005_000)), NO);
    let again = Claim { is_expected: true, arm_again_us: Some(5_000) };
    assert_eq!(nmis.claim(true, &at(2_000_000)), again);
    assert_eq!(nmis.claim(false, &at(3_004_999)), YES);
    nmis.disarm(&at(3_000_000));
    assert_eq!(nmis.claim(true, &at(3_999_999)), YES);
    assert_eq!(nmis.claim(true, &at(4_000_000)), NO);
}
