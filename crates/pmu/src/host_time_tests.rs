// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn each_tick_is_either_the_hosts_or_idle() {
    let mut counters = HostCounters::begin();
    assert_eq!(counters.read(100), HostCounts { cycles: 100, reference_cycles: 100, idle: 0 });
    counters.wait(150);
    counters.go_on(1000);
    counters.wait(1000);
    counters.go_on(1001);
    assert_eq!(counters.read(1011), HostCounts { cycles: 160, reference_cycles: 160, idle: 851 });
}

#[test]
fn they_begin_again_at_their_width() {
    let mut counters = HostCounters::begin();
    let all = crate::Width::USUAL.mask();
    assert_eq!(counters.read(all).cycles, all);
    assert_eq!(counters.read(all + 3).cycles, 2);
}
