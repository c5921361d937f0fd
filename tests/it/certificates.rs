//! Tests unreadable root certificates that the user chose. `.ci/release-check` tests a system without
//! certificates in a chroot.

use lab::Lab;

#[test]
fn a_file_of_certificates_that_cannot_be_read_is_named() {
    let lab = Lab::new();
    let nowhere = lab.path().join("nowhere.pem");
    for (address, part) in [
        ("https://127.0.0.1:1", "SSL_CERT_FILE names no readable certificate: correct it or unset it"),
        ("http://127.0.0.1:1", "Connection refused"),
    ] {
        let mut command = lab.command(&["new", "--url", address, "-o", "new.yaml"]);
        let output = command.env("SSL_CERT_FILE", &nowhere).env_remove("SSL_CERT_DIR").output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{said}");
        assert!(said.contains(part), "{address}: {said}");
    }
}
