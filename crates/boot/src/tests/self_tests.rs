// SPDX-License-Identifier: MIT OR Apache-2.0
use std::format;
use std::string::ToString;

use crate::self_tests::{
    EndFault, EndStep, MadtDamage, SELF_TEST_OPTION, SelfTest, SelfTests, StopPhase, UpdateFault, UpdateStep,
};
use crate::{Complaint, Options};

fn read(value: &str) -> SelfTests {
    let line = format!("selftest={value}");
    let (options, tests, complaints) = Options::parse_with_self_tests(&line);
    assert_eq!((options, complaints.kept().len()), (Options::default(), 0), "{line}");
    tests
}

#[test]
fn an_image_without_fault_points_refuses_every_self_test_and_goes_on() {
    for word in ["selftest=panic", "selftest=none", "selftest=fire", "selftest"] {
        let line = format!("cpus=2 {word} cpus=3");
        let (options, complaints) = Options::parse(&line);
        assert_eq!(options.cpus, Some(3));
        assert!(matches!(complaints.kept(), [Complaint::NoFaultPoints { word: refused }] if *refused == word));
        let expected = format!(
            "option {word} is ignored: this image is built without fault points; boot the test image, \
             target/baton-faults.elf"
        );
        assert_eq!(complaints.kept()[0].to_string(), expected);
    }
}

#[test]
fn the_default_and_the_examples_are_read_and_the_default_is_no_test() {
    assert_eq!(read(SELF_TEST_OPTION.default), SelfTests::default());
    for example in SELF_TEST_OPTION.examples {
        assert_eq!(read(example).all().is_empty(), *example == "none", "{example}");
    }
}

#[test]
fn every_name_alone_is_its_self_test_and_is_listed_for_people() {
    for (name, test) in SelfTest::NAMED {
        assert_eq!(read(name).all(), [test], "{name}");
        assert!(read(name).contains(test) && SELF_TEST_OPTION.accepted.contains(&format!("{name}, ")), "{name}");
    }
}

#[test]
fn tests_are_kept_in_their_order_and_the_last_option_counts() {
    let line = "selftest=nmi selftest=panic,madt:absurd,stop:2:online log=debug";
    let (options, tests, complaints) = Options::parse_with_self_tests(line);
    assert_eq!((options.log, complaints.kept().len()), (klog::Level::Debug, 0));
    let stop = SelfTest::Stop { cpu: 2, phase: StopPhase::Online };
    assert_eq!(tests.all(), [SelfTest::Panic, SelfTest::Madt(MadtDamage::Absurd), stop]);
    assert_eq!((tests.madt_damage(), read("panic").madt_damage()), (Some(MadtDamage::Absurd), None));
    assert_eq!([1, 2].map(|cpu| tests.stop(cpu)), [None, Some(StopPhase::Online)]);
}

#[test]
fn wrong_self_tests_are_refused_whole_and_named() {
    for value in [
        "",
        "fire",
        "panic,",
        "log-cost",
        "stop:0:online",
        "stop:1024:online",
        "update:panic",
        "update:panic:flush",
        "update:wait:there",
        "update:wait:-gdt",
        "update:wait:",
        "update:wait:interrupts",
        "end",
        "end:panic",
        "end:panic:",
        "end:damage:stop",
        "end:stop:panic",
        "panic,panic,panic,panic,panic,panic,panic,panic,panic",
    ] {
        let line = format!("selftest={value}");
        let (_, tests, complaints) = Options::parse_with_self_tests(&line);
        assert!(matches!(complaints.kept(), [Complaint::Malformed { value: Some(v), .. }] if *v == value), "{value}");
        assert_eq!(tests, SelfTests::default(), "{value}");
    }
    let (_, _, complaints) = Options::parse_with_self_tests("selftest");
    assert!(complaints.kept()[0].to_string().starts_with("option selftest is ignored, it lacks its value"));
}

#[test]
fn a_fault_of_an_update_is_found_by_its_step() {
    let tests = read("update:damage:restore,update:hang:meet");
    assert_eq!(tests.update(UpdateStep::Restore), Some(UpdateFault::Damage));
    assert_eq!(tests.update(UpdateStep::Meet), Some(UpdateFault::Hang));
    assert_eq!([UpdateStep::Begin, UpdateStep::Prepare, UpdateStep::Arrive].map(|step| tests.update(step)), [None; 3]);
}

#[test]
fn each_fault_point_has_a_name_and_its_number() {
    for (point, name) in (1..).zip(SelfTest::UPDATE_POINTS) {
        let tests = read(&format!("update:wait:{name}"));
        assert_eq!([0, 5].map(|update| tests.update_wait(update)), [Some(point); 2], "{name}");
    }
    let each = read("update:wait:each");
    assert_eq!([0, 1, 12, 13].map(|update| each.update_wait(update)), [1, 2, 13, 1].map(Some));
    assert_eq!(read("panic").update_wait(0), None);
    let for_interrupt = read("update:wait:interrupt");
    assert_eq!(for_interrupt.all(), [SelfTest::UpdateWaitForInterrupt]);
    assert_eq!(for_interrupt.update_wait(0), None, "no fault point of the switch pages");
}

#[test]
fn each_step_of_the_end_can_fail_in_each_way() {
    for (fault_name, fault) in EndFault::NAMED {
        for (step_name, step) in EndStep::NAMED {
            let tests = read(&format!("end:{fault_name}:{step_name}"));
            assert_eq!(tests.all(), [SelfTest::End { fault, step }]);
            assert_eq!(tests.end(step), Some(fault));
            assert_eq!(EndStep::NAMED.iter().filter(|(_, other)| tests.end(*other).is_some()).count(), 1);
        }
    }
}
