// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of samples.

use proptest::prelude::*;
use wire::{VmInfo, VmState};

use super::*;

fn snapshot(at_ns: u64, ran_ns: u64, waited_ns: u64, exits_total: u64) -> Snapshot {
    let guest = VmInfo {
        name: "web".to_owned(),
        state: VmState::Running,
        vcpus: 1,
        memory_bytes: 0,
        resident_bytes: None,
        cpus: vec![0],
        since_ns: 0,
        throttled_since_ns: None,
        exits_total,
        exits: vec![],
        reason: None,
        console: wire::ConsoleOutput::default(),
    };
    let figures = VcpuPerf { at_ns, ran_ns, waited_ns, ..VcpuPerf::default() };
    let info = wire::HostInfo { uptime_ns: at_ns, ..baton::testing::host_info() };
    Snapshot {
        info: Some(info),
        guests: vec![guest],
        vcpus: [(("web".to_owned(), 0), figures)].into(),
        ..Snapshot::default()
    }
}

#[test]
fn a_sample_has_shares_and_rates_of_the_time_between_two_readings() {
    let sample = between(&snapshot(1_000_000_000, 5, 7, 100), &snapshot(3_000_000_000, 500_000_005, 7, 150));
    assert_eq!((sample["guest_cpu"]["web"], sample["guest_wait"]["web"]), (0.25, 0.0));
    assert_eq!((sample["guests_cpu"][""], sample["guest_exits"]["web"]), (0.25, 25.0));
    assert_eq!(sample["memory_free"][""], (1u64 << 30) as f64);
    assert!(sample.keys().all(|metric| METRICS.iter().any(|(name, _)| name == metric)));
}

#[test]
fn a_sample_has_the_shares_of_all_cpus_that_were_counted() {
    let with = |times: &[(u32, [f64; 3])]| {
        let time = |&(cpu, [guests, host, idle]): &(u32, [f64; 3])| {
            (cpu, CpuTime { guests, host, idle, ..CpuTime::default() })
        };
        Snapshot { cpu_times: times.iter().map(time).collect(), ..snapshot(0, 0, 0, 0) }
    };
    let before = with(&[(0, [1.0, 1.0, 1.0]), (1, [0.0; 3]), (2, [5.0; 3])]);
    // CPU 2 is offline, and CPU 3 is new.
    let now = with(&[(0, [3.0, 2.0, 2.0]), (1, [0.0, 0.0, 4.0]), (2, [5.0; 3]), (3, [9.0; 3])]);
    let sample = between(&before, &now);
    let shares = ["cpus_guests", "cpus_host", "cpus_idle"].map(|metric| sample[metric][""]);
    assert_eq!(shares, [0.5, 0.25, 1.25]);
    assert!(sample.keys().all(|metric| METRICS.iter().any(|(name, _)| name == metric)));
    assert!(!between(&now, &now).contains_key("cpus_idle"));
}

#[test]
fn a_sample_of_a_release_without_shares_of_cpus_is_read() {
    let old = "{\"cpus_online\": {\"\": 2.0}, \"guest_cpu\": {\"web\": 0.25}}";
    let sample: Sample = serde_json::from_str(old).expect("a sample");
    assert_eq!((sample["cpus_online"][""], sample["guest_cpu"]["web"]), (2.0, 0.25));
}

#[test]
fn counts_that_began_again_are_left_out() {
    let sample = between(&snapshot(10, 9, 9, 100), &snapshot(20, 3, 9, 5));
    assert!(!sample.contains_key("guest_cpu") && !sample.contains_key("guest_exits"), "{sample:?}");
}

#[test]
fn samples_come_at_the_interval() {
    let (mut sampler, at) = (Sampler::new(Duration::from_secs(30)), Instant::now());
    let mut taken = |seconds| sampler.sample(at + Duration::from_secs(seconds), &snapshot(seconds, 0, 0, 0)).is_some();
    assert_eq!([0, 29, 30, 31, 60].map(&mut taken), [false, false, true, false, true]);
    sampler.begin_again();
    assert!(sampler.sample(at + Duration::from_secs(90), &snapshot(90, 0, 0, 0)).is_none());
}

proptest! {
    #[test]
    fn whatever_a_host_counts_values_are_finite(before in any::<[u64; 4]>(), now in any::<[u64; 4]>()) {
        let of = |[a, b, c, d]: [u64; 4]| snapshot(a, b, c, d);
        let sample = between(&of(before), &of(now));
        prop_assert!(sample.values().flat_map(BTreeMap::values).all(|value| value.is_finite() && *value >= 0.0));
    }
}
