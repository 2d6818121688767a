// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of shares and rates.

use proptest::prelude::*;

use super::super::samples::reading;
use super::super::ticks::COUNTER_MASK;
use super::*;

#[test]
fn a_view_has_the_shares_and_rates_of_the_time_between_two_readings() {
    let view = between(&reading(10), &reading(12));
    let CpuRow { guest, host, idle, ref vcpus, .. } = view.cpus[0];
    assert_eq!((guest, host, idle), (Some(0.75), Some(0.05), Some(0.2)));
    assert_eq!((vcpus.join(" ").as_str(), view.cpus[1].guest), ("web/0 db/0", None));
    let web = &view.guests[0];
    assert_eq!((web.cpu, web.wait, web.exits_per_s), (Some(0.5), Some(0.1), Some(30.0)));
    assert_eq!(web.waiting, [Waiting { vcpu: 0, share: 0.1 }]);
    let kinds: Vec<_> = web.exits.iter().map(|exit| (exit.kind, exit.per_s)).collect();
    assert_eq!(kinds, [(ExitKind::Halt, 20.0), (ExitKind::Port, 10.0)]);
    assert!(view.guests[1].waiting.is_empty());
}

#[test]
fn counts_that_began_again_give_no_share() {
    let (before, mut now) = (reading(10), reading(12));
    now.cpu_figures.get_mut(&0).expect("CPU 0").began_ns = 8;
    now.guests[0].exits_total = 0;
    now.vcpu_figures.get_mut(&("web".to_owned(), 0)).expect("web").ran_ns = 0;
    let view = between(&before, &now);
    assert_eq!((view.cpus[0].guest, view.guests[0].cpu, view.guests[0].exits_per_s), (None, None, None));
    let same = between(&before, &before);
    assert_eq!((same.cpus[0].guest, same.guests[0].cpu, same.guests[0].exits_per_s), (None, None, None));
}

#[test]
fn counters_that_were_begun_again_have_ticks_of_their_own() {
    let now = &reading(2).cpu_figures[&0];
    let expected = Ticks { all: 2_000_000_000, guests: 1_500_000_000, host: 100_000_000, idle: 400_000_000 };
    assert_eq!(Ticks::since_begun(now), Some(expected));
    assert_eq!(Ticks::since_begun(&CpuPerf::default()), None);
}

#[test]
fn a_counter_that_goes_round_goes_on() {
    let (mut before, mut now) = (reading(10), reading(12));
    before.cpu_figures.get_mut(&0).expect("CPU 0").idle_ticks = COUNTER_MASK;
    now.cpu_figures.get_mut(&0).expect("CPU 0").idle_ticks = 399_999_999;
    assert_eq!(between(&before, &now).cpus[0].idle, Some(0.2));
}

#[test]
fn guests_are_in_the_order_that_is_asked_for() {
    let mut view = between(&reading(10), &reading(12));
    let mut first = |sort| {
        view.sort(sort);
        view.guests[0].name.clone()
    };
    let sorts = [Sort::Cpu, Sort::Wait, Sort::Exits, Sort::Memory, Sort::Name];
    assert_eq!(sorts.map(&mut first), ["web", "web", "db", "db", "db"]);
}

proptest! {
    #[test]
    fn whatever_a_host_counts_shares_are_numbers(numbers in any::<[u64; 12]>()) {
        let mut readings = [reading(10), reading(12)];
        for (reading, n) in readings.iter_mut().zip(numbers.chunks(6)) {
            let perf = reading.cpu_figures.get_mut(&0).expect("CPU 0");
            (perf.ticks, perf.host_reference_cycles, perf.idle_ticks, perf.gone_ticks) = (n[0], n[1], n[2], n[3]);
            perf.guests[0].ticks = n[4];
            reading.info.uptime_ns = n[5];
            reading.guests[0].exits_total = n[0];
            reading.guests[0].exits[0].count = n[1];
            let figures = reading.vcpu_figures.get_mut(&("web".to_owned(), 0)).expect("web");
            (figures.at_ns, figures.ran_ns, figures.waited_ns) = (n[2], n[3], n[4]);
        }
        let mut view = between(&readings[0], &readings[1]);
        view.sort(Sort::Cpu);
        let cpu = &view.cpus[0];
        let numbers = [cpu.guest, cpu.host, cpu.idle, view.guests[0].cpu, view.guests[0].wait, view.guests[0].exits_per_s];
        prop_assert!(numbers.iter().flatten().all(|number| number.is_finite() && *number >= 0.0));
    }
}
