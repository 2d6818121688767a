// SPDX-License-Identifier: MIT OR Apache-2.0
use wire::VmState;

use super::*;
use crate::testing::vm;

#[test]
fn memory_on_demand_is_shown_with_the_part_that_is_there() {
    let whole = VmInfo { memory_bytes: 64 << 20, ..vm("web", VmState::Running) };
    let on_demand = VmInfo { resident_bytes: Some(6 << 20), ..whole.clone() };
    assert_eq!([memory(&whole), memory(&on_demand)], ["64 MiB", "6 MiB of 64 MiB"]);
}
