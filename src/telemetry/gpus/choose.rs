//! Determines which GPUs of this machine belong to the server: the GPUs that the plan names, otherwise the
//! GPUs that the server's environment variables allow, otherwise the GPUs that the server's processes use,
//! otherwise all GPUs.

use super::device::Device;

/// How the GPUs to read are selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// These GPUs, by number or UUID.
    Told(Vec<String>),
    /// The GPUs that are assigned to the server by these environment variables, if they are set.
    Given(Visible),
}

/// The environment variables that specify which GPUs a process may use. A value is `None` if the variable
/// is not set, or if its value is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Visible {
    /// The value of `CUDA_VISIBLE_DEVICES`.
    pub cuda: Option<String>,
    /// The value of `CUDA_DEVICE_ORDER`.
    pub cuda_order: Option<String>,
    /// The value of `ROCR_VISIBLE_DEVICES`.
    pub rocr: Option<String>,
    /// The value of `HIP_VISIBLE_DEVICES`.
    pub hip: Option<String>,
}

/// The value of `CUDA_DEVICE_ORDER` with which CUDA numbers the GPUs in the same order as the tools.
const BY_BUS: &str = "PCI_BUS_ID";

/// Returns the selected devices. `of_server` returns the UUIDs of the devices that the server's processes
/// use; the list is empty if they are unknown.
///
/// # Errors
/// Fails if the devices cannot be determined; the error is the reason as text.
pub(super) fn choose(
    which: &Which,
    all: &[Device],
    (is_amd, of_server): (bool, impl FnOnce() -> Vec<String>),
) -> Result<Vec<Device>, String> {
    match which {
        Which::Told(told) => told.iter().map(|one| named(one, all)).collect(),
        Which::Given(visible) if is_amd => by_rocm(visible, all),
        Which::Given(Visible { cuda: Some(list), cuda_order, .. }) => by_cuda(list, cuda_order.as_deref(), all),
        Which::Given(_) => {
            let of_server = of_server();
            let used: Vec<Device> = all.iter().filter(|device| of_server.contains(&device.uuid)).cloned().collect();
            Ok(if used.is_empty() { whole(all).cloned().collect() } else { used })
        }
    }
}

/// Returns the devices that are whole GPUs, not MIG instances.
fn whole(all: &[Device]) -> impl Iterator<Item = &Device> {
    all.iter().filter(|device| !device.is_instance)
}

/// Returns the device that `one` names by its number, its UUID or a prefix of its UUID; `None` if there is
/// none, or if several devices have this prefix.
fn find<'d>(one: &str, all: &'d [Device]) -> Option<&'d Device> {
    match one.parse::<u32>() {
        Ok(index) => whole(all).find(|device| device.index == index),
        Err(_) => {
            let mut found = all.iter().filter(|device| !one.is_empty() && device.uuid.starts_with(one));
            // A prefix that matches several devices does not identify one.
            found.next().filter(|_| found.next().is_none())
        }
    }
}

fn named(one: &str, all: &[Device]) -> Result<Device, String> {
    let there = || all.iter().map(Device::shown).collect::<Vec<_>>().join(", ");
    find(one, all).cloned().ok_or_else(|| format!("`devices` names an unknown GPU {one}; available: {}", there()))
}

/// Interprets the value of `CUDA_VISIBLE_DEVICES`. As in CUDA, the first invalid entry ends the list.
fn by_cuda(list: &str, order: Option<&str>, all: &[Device]) -> Result<Vec<Device>, String> {
    let written = || format!("CUDA_VISIBLE_DEVICES={list}");
    let entries: Vec<&str> = list.split(',').map(str::trim).collect();
    let by_number = entries.iter().any(|entry| entry.parse::<u32>().is_ok());
    let are_alike = whole(all).all(|device| Some(&device.name) == whole(all).next().map(|first| &first.name));
    // By default, CUDA assigns number 0 to the fastest GPU, and only CUDA can determine which one that is.
    if by_number && !are_alike && order != Some(BY_BUS) {
        return Err(format!(
            "the GPUs in {} are ambiguous, because they are of several kinds: start the server with \
             CUDA_DEVICE_ORDER={BY_BUS}, or set `devices`",
            written()
        ));
    }
    let found: Vec<Device> = entries.into_iter().map_while(|entry| find(entry, all).cloned()).collect();
    if found.is_empty() {
        return Err(format!("{} leaves the server none of the available GPUs", written()));
    }
    Ok(found)
}

/// Interprets ROCm's variables. The numbers in `HIP_VISIBLE_DEVICES` refer to the GPUs that
/// `ROCR_VISIBLE_DEVICES` allows.
fn by_rocm(visible: &Visible, all: &[Device]) -> Result<Vec<Device>, String> {
    let mut left: Vec<Device> = all.to_vec();
    let hip = visible.hip.as_ref().map(|list| ("HIP_VISIBLE_DEVICES", list));
    let hip = hip.or(visible.cuda.as_ref().map(|list| ("CUDA_VISIBLE_DEVICES", list)));
    let rocr = visible.rocr.as_ref().map(|list| ("ROCR_VISIBLE_DEVICES", list));
    for (name, list) in rocr.into_iter().chain(hip) {
        let at = |entry: &str| match entry.parse::<usize>() {
            Ok(place) => left.get(place).cloned(),
            Err(_) => find(entry, &left).cloned(),
        };
        let found: Vec<Device> = list.split(',').map_while(|entry| at(entry.trim())).collect();
        if found.is_empty() {
            return Err(format!("{name}={list} leaves the server none of the available GPUs"));
        }
        left = found;
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(index: u32, name: &str) -> Device {
        Device { index, uuid: format!("GPU-{index}a{index}b"), name: name.to_owned(), is_instance: false }
    }

    fn four() -> Vec<Device> {
        let mut all: Vec<Device> = (0..4).map(|index| device(index, "H100")).collect();
        let instance = Device { uuid: "MIG-77".to_owned(), is_instance: true, ..device(3, "H100 MIG 1g") };
        all.push(instance);
        all
    }

    /// Returns the selected devices as displayed, or the reason why there are none.
    fn chosen(which: &Which, is_amd: bool, of_server: &[&str]) -> Result<String, String> {
        let of_server = || of_server.iter().map(|uuid| (*uuid).to_owned()).collect();
        let found = choose(which, &four(), (is_amd, of_server))?;
        Ok(found.iter().map(Device::shown).collect::<Vec<_>>().join(" "))
    }

    fn told(devices: &[&str]) -> Which {
        Which::Told(devices.iter().map(|one| (*one).to_owned()).collect())
    }

    fn cuda(list: &str) -> Which {
        Which::Given(Visible { cuda: Some(list.to_owned()), ..Visible::default() })
    }

    #[test]
    fn the_plan_s_word_stands_before_the_variables_and_these_before_processes() {
        assert_eq!(chosen(&told(&["2", "GPU-0", "MIG-77"]), false, &[]).as_deref(), Ok("2 0 MIG-77"));
        let why = chosen(&told(&["7"]), false, &[]).unwrap_err();
        assert_eq!(why, "`devices` names an unknown GPU 7; available: 0, 1, 2, 3, MIG-77");
        assert!(chosen(&told(&["GPU-"]), false, &[]).is_err(), "four have this prefix");
        assert_eq!(chosen(&cuda("1,GPU-3a"), false, &["GPU-0a0b"]).as_deref(), Ok("1 3"));
        assert_eq!(chosen(&cuda("MIG-77"), false, &[]).as_deref(), Ok("MIG-77"));
        // CUDA uses the entries before the first invalid one.
        assert_eq!(chosen(&cuda("1,-1,2"), false, &[]).as_deref(), Ok("1"));
        for none in ["", "-1", "9"] {
            assert!(chosen(&cuda(none), false, &[]).unwrap_err().contains("leaves the server none"), "{none}");
        }
        let unsaid = Which::Given(Visible::default());
        assert_eq!(chosen(&unsaid, false, &["GPU-2a2b"]).as_deref(), Ok("2"));
        assert_eq!(chosen(&unsaid, false, &[]).as_deref(), Ok("0 1 2 3"), "whole GPUs only");
    }

    #[test]
    fn numbers_of_cuda_say_nothing_where_gpus_differ() {
        let all = [device(0, "A10"), device(1, "H100")];
        let by = |which: &Which| choose(which, &all, (false, Vec::new));
        assert!(by(&cuda("0")).unwrap_err().contains("CUDA_DEVICE_ORDER=PCI_BUS_ID"));
        assert_eq!(by(&cuda("GPU-1a1b")).unwrap()[0].name, "H100");
        let ordered = Visible { cuda: Some("0".into()), cuda_order: Some(BY_BUS.into()), ..Visible::default() };
        assert_eq!(by(&Which::Given(ordered)).unwrap()[0].name, "A10");
    }

    #[test]
    fn hip_counts_among_what_rocr_leaves() {
        let visible = |rocr: Option<&str>, hip: Option<&str>, cuda: Option<&str>| {
            let [rocr, hip, cuda] = [rocr, hip, cuda].map(|list| list.map(str::to_owned));
            Which::Given(Visible { rocr, hip, cuda, cuda_order: None })
        };
        assert_eq!(chosen(&visible(Some("2,3"), Some("1"), None), true, &[]).as_deref(), Ok("3"));
        assert_eq!(chosen(&visible(None, None, Some("1")), true, &[]).as_deref(), Ok("1"));
        assert!(chosen(&visible(Some("9"), None, None), true, &[]).unwrap_err().starts_with("ROCR_VISIBLE_DEVICES=9"));
    }
}
