//! The texts of TLS errors, with their remedies.

use super::roots::chosen;

/// Parts of the errors about certificates, of the server or of the client. Waiting does not fix them. The
/// alerts are those that servers send if they do not accept the client's certificate.
const ABOUT_CERTIFICATES: [&str; 5] = [
    "invalid peer certificate",
    "received fatal alert: CertificateRequired",
    "received fatal alert: BadCertificate",
    "received fatal alert: UnknownCA",
    "received fatal alert: CertificateUnknown",
];

/// Whether the text of an error is about a certificate, of the server or of the client.
pub fn is_about_certificates(reason: &str) -> bool {
    ABOUT_CERTIFICATES.iter().any(|part| reason.contains(part))
}

/// Returns the text of a TLS error with its remedy, if it has a known one.
pub fn in_words(reason: String) -> String {
    if reason.contains("No CA certificates were loaded") {
        return format!("{} names no readable certificate: correct it or unset it", chosen());
    }
    match remedy(&reason) {
        Some(remedy) => format!("{reason}; {remedy}"),
        None => reason,
    }
}

fn remedy(reason: &str) -> Option<&'static str> {
    if !is_about_certificates(reason) {
        return None;
    }
    if reason.contains("UnknownIssuer") || reason.contains("CaUsedAsEndEntity") {
        return Some(
            "no trusted authority has signed the certificate: name the file of its authority on the endpoint, `tls: { \
             ca: FILE }`, or in the environment variable SSL_CERT_FILE",
        );
    }
    if reason.contains("not valid for name") || reason.contains("NotValidForName") {
        return Some("if `url` contains an IP address, write the certificate's name as `host` of the endpoint");
    }
    if reason.contains("CertificateRequired") {
        return Some(
            "the server requires a certificate of the client: name its files on the endpoint, `tls: { certificate: FILE, key: \
             FILE }`",
        );
    }
    reason
        .contains("received fatal alert")
        .then_some("the server does not accept the certificate of the client: check `tls.certificate` of the endpoint")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_about_certificates_have_a_remedy() {
        let words = |reason: &str| in_words(reason.to_owned());
        assert!(words("invalid peer certificate: UnknownIssuer").contains("SSL_CERT_FILE"));
        assert!(words("invalid peer certificate: UnknownIssuer").contains("tls: { ca: FILE }"));
        assert!(words("received fatal alert: CertificateRequired").contains("tls: { certificate: FILE, key: FILE }"));
        assert!(words("invalid peer certificate: certificate not valid for name \"h\"").contains("`host`"));
        assert_eq!(words("Connection refused (os error 111)"), "Connection refused (os error 111)");
    }
}
