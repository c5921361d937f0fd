//! A fake driver library: two GPUs that draw 300 W and 500 W; the second has a MIG instance if the variable
//! FAKE_MIG is set. Their processes are the live ones listed in the file FAKE_PIDS.
#![allow(non_snake_case, clippy::missing_safety_doc, unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};

const NOT_SUPPORTED: c_int = 3;
const NOT_FOUND: c_int = 6;
const TOO_SMALL: c_int = 7;
const NAMES: [&str; 3] = ["GPU-0000", "GPU-1111", "MIG-2222"];
const MIB: u64 = 1 << 20;

/// Handles are indexes of names, from 1.
type Handle = usize;

fn is_cut() -> bool {
    std::env::var_os("FAKE_MIG").is_some()
}

fn watts(gpu: Handle) -> u64 {
    if gpu == 1 { 300 } else { 500 }
}

unsafe fn put<T>(to: *mut T, value: T) -> c_int {
    unsafe { to.write(value) };
    0
}

unsafe fn text(to: *mut c_char, room: c_uint, text: &str) -> c_int {
    if text.len() as c_uint >= room {
        return TOO_SMALL;
    }
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), to, text.len());
        to.add(text.len()).write(0);
    }
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> c_int {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> c_int {
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> c_int {
    unsafe { put(count, 2) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, handle: *mut Handle) -> c_int {
    unsafe { put(handle, index as usize + 1) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, handle: *mut Handle) -> c_int {
    let uuid = unsafe { CStr::from_ptr(uuid) };
    match NAMES.iter().position(|name| uuid.to_bytes() == name.as_bytes()) {
        Some(place) => unsafe { put(handle, place + 1) },
        None => NOT_FOUND,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUUID(gpu: Handle, to: *mut c_char, room: c_uint) -> c_int {
    unsafe { text(to, room, NAMES[gpu - 1]) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetName(_: Handle, to: *mut c_char, room: c_uint) -> c_int {
    unsafe { text(to, room, "NVIDIA Test 80GB") }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUtilizationRates(gpu: Handle, rates: *mut [c_uint; 2]) -> c_int {
    if gpu == 3 { NOT_SUPPORTED } else { unsafe { put(rates, [90, 40]) } }
}

/// `version`, followed by total, reserved, free and used.
#[repr(C)]
pub struct Memory {
    version: c_uint,
    sizes: [c_ulonglong; 4],
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(gpu: Handle, memory: *mut Memory) -> c_int {
    let total = if gpu == 3 { 10_000 } else { 80_000 };
    let sizes = [total, 500, total - 7_500, 7_000].map(|mib| mib * MIB);
    unsafe { put(&raw mut (*memory).sizes, sizes) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPowerUsage(gpu: Handle, milliwatts: *mut c_uint) -> c_int {
    unsafe { put(milliwatts, watts(gpu) as c_uint * 1000) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTotalEnergyConsumption(gpu: Handle, millijoules: *mut c_ulonglong) -> c_int {
    let passed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    // Since last month, so that doubles represent it to the millijoule.
    let passed = passed.as_micros() as u64 % 2_600_000_000_000;
    unsafe { put(millijoules, passed * watts(gpu) / 1000) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTemperature(_: Handle, _: c_uint, degrees: *mut c_uint) -> c_int {
    unsafe { put(degrees, 61) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetClockInfo(_: Handle, _: c_uint, mhz: *mut c_uint) -> c_int {
    unsafe { put(mhz, 1_980) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCurrentClocksThrottleReasons(_: Handle, mask: *mut c_ulonglong) -> c_int {
    unsafe { put(mask, 4) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMigMode(gpu: Handle, current: *mut c_uint, pending: *mut c_uint) -> c_int {
    let mode = c_uint::from(is_cut() && gpu == 2);
    unsafe { put(current, mode) + put(pending, mode) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMaxMigDeviceCount(_: Handle, count: *mut c_uint) -> c_int {
    unsafe { put(count, 7) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(_: Handle, place: c_uint, to: *mut Handle) -> c_int {
    if place == 2 { unsafe { put(to, 3) } } else { NOT_FOUND }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(_: Handle, parent: *mut Handle) -> c_int {
    unsafe { put(parent, 2) }
}

/// A process: its id, its memory, its instances of the GPU.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Process {
    pid: c_uint,
    used: c_ulonglong,
    instances: [c_uint; 2],
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    gpu: Handle,
    count: *mut c_uint,
    to: *mut c_void,
) -> c_int {
    let file = std::env::var("FAKE_PIDS").ok().and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    let pids: Vec<c_uint> = file.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
    let lives = |pid: &c_uint| std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok();
    let pids: Vec<c_uint> = pids.into_iter().filter(|pid| gpu != 1 && lives(pid)).collect();
    let room = unsafe { count.read() } as usize;
    unsafe { count.write(pids.len() as c_uint) };
    if room < pids.len() {
        return TOO_SMALL;
    }
    for (at, pid) in pids.into_iter().enumerate() {
        unsafe { to.cast::<Process>().add(at).write(Process { pid, used: 7_000 * MIB, instances: [u32::MAX; 2] }) };
    }
    0
}
