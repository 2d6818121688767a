// SPDX-License-Identifier: MIT OR Apache-2.0
//! A new image as it adopts guests: it builds the guests of the test, and fails where the test has it fail.

use std::collections::BTreeMap;

use handover::layout::guests::{BlockPlace, Guest};
use update::adoption::{Builder, Known, Mismatch, Plan, Refused, adopt_guests};
use update::slots::{Restorer, Slot, Slots};

use crate::record::{Sample, digest, name};

/// A step that fails, for a guest and, where it is a vCPU's, its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    Build(usize),
    RestoreVcpu(usize, u32),
    RestoreDevices(usize),
    Verify(usize, u32),
}

/// A problem: its place, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    Mismatch(Mismatch),
    Fault(Fault),
}

impl From<Mismatch> for Problem {
    fn from(mismatch: Mismatch) -> Self {
        Self::Mismatch(mismatch)
    }
}

/// A vCPU, and how often it has been restored and compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vcpu {
    pub guest: usize,
    pub number: u32,
    pub restored: u32,
    pub verified: u32,
}

/// The new image.
#[derive(Debug)]
pub struct Image {
    pub names: Vec<String>,
    pub digests: Vec<u64>,
    pub fault: Fault,
    pub slots: BTreeMap<u32, Slots<Vcpu, usize>>,
    /// The acts so far, each with its guest's number.
    pub acts: Vec<(&'static str, usize)>,
    pub plans: Vec<Plan>,
    vcpus: Vec<u32>,
}

impl Image {
    /// One with the guests that the old image has.
    pub fn beside(sample: &Sample, fault: Fault) -> Self {
        let numbers = || 0..sample.guests.len();
        Self {
            names: numbers().map(name).collect(),
            digests: numbers().map(digest).collect(),
            fault,
            slots: BTreeMap::new(),
            acts: Vec::new(),
            plans: Vec::new(),
            vcpus: sample.guests.iter().map(|guest| guest.cpus.len() as u32).collect(),
        }
    }

    pub fn adopt(&mut self, sample: &Sample) -> Result<(), Refused<Problem>> {
        let mut result = Ok(());
        sample.with(|record| result = adopt_guests(record, self));
        result
    }

    fn fails(&self, fault: Fault) -> Result<(), Problem> {
        if self.fault == fault { Err(Problem::Fault(fault)) } else { Ok(()) }
    }

    /// Runs `run` on the slots of a CPU.
    pub fn with_slots<T>(&mut self, cpu: u32, run: impl FnOnce(&mut Slots<Vcpu, usize>, &mut Self) -> T) -> T {
        let mut slots = self.slots.remove(&cpu).unwrap_or_default();
        let result = run(&mut slots, self);
        self.slots.insert(cpu, slots);
        result
    }

    pub fn verify_all(&mut self) -> Result<(), Problem> {
        let cpus: Vec<u32> = self.slots.keys().copied().collect();
        cpus.into_iter().try_for_each(|cpu| self.with_slots(cpu, |slots, image| slots.verify(image)))
    }

    pub fn restore(&mut self, cpu: u32, taken: &mut Vec<Vcpu>) -> Result<(), Problem> {
        self.with_slots(cpu, |slots, image| slots.restore(image, |vcpu| taken.push(vcpu)))
    }

    /// Does all that the image does before it reports that it is prepared.
    pub fn prepare(&mut self, sample: &Sample) -> Result<(), Problem> {
        self.adopt(sample).map_err(|refused| refused.problem)?;
        self.verify_all()?;
        let cpus: Vec<u32> = self.slots.keys().copied().collect();
        cpus.into_iter().try_for_each(|cpu| self.rehearse(cpu))
    }

    fn rehearse(&mut self, cpu: u32) -> Result<(), Problem> {
        let mut taken = Vec::new();
        self.restore(cpu, &mut taken)?;
        for vcpu in taken {
            let owner = (vcpu.guest as u32, vcpu.number);
            let put_back = self.with_slots(cpu, |slots, _| slots.put_back(owner, vcpu));
            assert_eq!(put_back, Ok(()), "a vCPU has lost its slot");
        }
        Ok(())
    }
}

impl Builder for Image {
    type Run = usize;
    type Vcpu = Vcpu;
    type Error = Problem;

    fn guests(&self) -> usize {
        self.names.len()
    }

    fn known(&self, guest: usize) -> Known<'_> {
        Known { name: &self.names[guest], digest: self.digests[guest] }
    }

    fn set_status(&mut self, guest: usize, from: &Guest) {
        assert_eq!(from.number.get() as usize, guest);
        self.acts.push(("status", guest));
    }

    fn build(&mut self, guest: usize, plan: &Plan) -> Result<(usize, Vec<Vcpu>), Problem> {
        self.fails(Fault::Build(guest))?;
        self.plans.push(plan.clone());
        self.acts.push(("build", guest));
        let vcpu = |number| Vcpu { guest, number, ..Vcpu::default() };
        Ok((guest, (0..self.vcpus[guest]).map(vcpu).collect()))
    }

    fn number_of(&self, vcpu: &Vcpu) -> u32 {
        vcpu.number
    }

    fn pause(&mut self, guest: usize, run: &usize) {
        assert_eq!(guest, *run);
        self.acts.push(("pause", guest));
    }

    fn hold(&mut self, guest: usize) {
        self.acts.push(("hold", guest));
    }

    fn set_run(&mut self, guest: usize, run: &usize) {
        assert_eq!(guest, *run);
        self.acts.push(("run", guest));
    }

    fn assign(&mut self, cpu: u32, slot: Slot<Vcpu, usize>) {
        self.slots.entry(cpu).or_default().add(slot);
    }
}

impl Restorer<Vcpu, usize> for Image {
    type Error = Problem;

    fn restore_vcpu(&mut self, vcpu: &mut Vcpu, from: &BlockPlace) -> Result<(), Problem> {
        assert_eq!((from.guest.get() as usize, from.vcpu.get()), (vcpu.guest, vcpu.number), "another vCPU's block");
        self.fails(Fault::RestoreVcpu(vcpu.guest, vcpu.number))?;
        vcpu.restored += 1;
        Ok(())
    }

    fn restore_devices(&mut self, devices: &usize, from: &BlockPlace) -> Result<(), Problem> {
        assert_eq!(from.guest.get() as usize, *devices, "another guest's block");
        self.fails(Fault::RestoreDevices(*devices))?;
        self.acts.push(("devices", *devices));
        Ok(())
    }

    fn verify_vcpu(&mut self, vcpu: &mut Vcpu, _: &BlockPlace) -> Result<(), Problem> {
        self.fails(Fault::Verify(vcpu.guest, vcpu.number))?;
        assert!(vcpu.restored > 0, "it is compared before it is restored");
        vcpu.verified += 1;
        Ok(())
    }
}
