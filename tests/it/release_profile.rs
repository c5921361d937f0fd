//! Tests that the profile of release builds strips the binary.

use toml::Table;

/// `cargo` passes `strip` of the profile only to packages without an override. For a package with an override, it strips
/// only debug information, and the binary keeps 70 MB of symbols. This holds for overrides of all packages, too, which do
/// not cover packages of the workspace: `"*"`.
#[test]
fn the_package_of_the_binary_has_no_override_and_is_stripped() {
    let manifest: Table = include_str!("../../Cargo.toml").parse().unwrap();
    let profiles = manifest["profile"].as_table().unwrap();
    let release = profiles["release"].as_table().unwrap();
    assert_eq!(release["strip"].as_bool(), Some(true));
    let name = manifest["package"]["name"].as_str().unwrap();
    let overrides = release["package"].as_table().unwrap();
    assert!(!overrides.contains_key(name), "{name} has an override in [profile.release.package]");
    let is_named = |spec: &&String| spec.split(['@', ':']).any(|part| part == name);
    assert_eq!(overrides.keys().find(is_named), None, "{name} has an override under another spelling");
    // Profiles that inherit from `release` are not for binaries that are given away.
    let others =
        profiles.iter().filter(|(_, profile)| profile.get("inherits").is_some_and(|of| of.as_str() == Some("release")));
    assert_eq!(others.count(), 0);
    // The engine, the store and the analysis keep their full optimization.
    let level = |spec: &str| overrides[spec]["opt-level"].as_integer();
    for spec in ["*", "sweepline-core", "sweepline-mock", "sweepline-analysis"] {
        assert_eq!(level(spec), Some(3), "{spec}");
    }
}
