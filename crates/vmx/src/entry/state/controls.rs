// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control fields.

use crate::control::{Controls, Word};

area! {
    /// Control fields that entries check.
    pub struct ControlFields {
        pin: Field32 PinControls,
        primary: Field32 PrimaryControls,
        secondary: Field32 SecondaryControls,
        tertiary: Field64 TertiaryControls,
        exit: Field32 ExitControls,
        entry: Field32 EntryControls,
        vpid: Field16 Vpid,
        notification_vector: Field16 PostedInterruptNotificationVector,
        last_pid_pointer_index: Field16 LastPidPointerIndex,
        cr3_target_count: Field32 Cr3TargetCount,
        tpr_threshold: Field32 TprThreshold,
        exit_msr_store_count: Field32 ExitMsrStoreCount,
        exit_msr_load_count: Field32 ExitMsrLoadCount,
        entry_msr_load_count: Field32 EntryMsrLoadCount,
        interruption: Field32 EntryInterruptionInformation,
        error_code: Field32 EntryExceptionErrorCode,
        instruction_length: Field32 EntryInstructionLength,
        io_bitmap_a: Field64 IoBitmapA,
        io_bitmap_b: Field64 IoBitmapB,
        msr_bitmap: Field64 MsrBitmap,
        exit_msr_store: Field64 ExitMsrStoreAddress,
        exit_msr_load: Field64 ExitMsrLoadAddress,
        entry_msr_load: Field64 EntryMsrLoadAddress,
        pml_address: Field64 PmlAddress,
        virtual_apic: Field64 VirtualApicAddress,
        apic_access: Field64 ApicAccessAddress,
        posted_interrupt_descriptor: Field64 PostedInterruptDescriptor,
        pid_pointer_table: Field64 PidPointerTable,
        ept_pointer: Field64 EptPointer,
        vmread_bitmap: Field64 VmreadBitmap,
        vmwrite_bitmap: Field64 VmwriteBitmap,
        virtualization_exception: Field64 VirtualizationExceptionInformation,
        tsc_multiplier: Field64 TscMultiplier,
    }
}

impl ControlFields {
    /// The six words of controls.
    pub fn set(&self) -> Controls {
        let words = [self.pin, self.primary, self.secondary, self.exit, self.entry].map(u64::from);
        let [pin, primary, secondary, exit, entry] = words;
        let words = [
            (Word::Pin, pin),
            (Word::Primary, primary),
            (Word::Secondary, secondary),
            (Word::Tertiary, self.tertiary),
            (Word::Exit, exit),
            (Word::Entry, entry),
        ];
        words.into_iter().fold(Controls::NONE, |controls, (word, value)| controls.with_word(word, value))
    }

    /// Takes the six words from a set.
    pub fn take(&mut self, controls: Controls) {
        let word = |word| controls.word(word) as u32;
        (self.pin, self.primary, self.secondary) = (word(Word::Pin), word(Word::Primary), word(Word::Secondary));
        (self.exit, self.entry) = (word(Word::Exit), word(Word::Entry));
        self.tertiary = controls.word(Word::Tertiary);
    }
}
