//! The heads of requests. They are created once; only the request's number and the length of its body differ
//! between requests.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version, header};

use crate::engine::pattern::{Field, fields};
use crate::engine::target::Target;
use crate::expand::{RunSpec, Shaping};

/// Everything in a request except its number and its body. The heads contain the API key, so they must
/// never be printed.
pub(crate) struct Heads {
    /// One head for each class; a run that is not a mix has one head.
    heads: Vec<Head>,
    id_prefix: String,
}

struct Head {
    uri: Uri,
    fields: HeaderMap,
}

impl Heads {
    /// Creates the heads of requests to `target` as `spec` defines them. The id of each request begins with
    /// `id_prefix`.
    pub(crate) fn new(spec: &RunSpec, target: &Target, id_prefix: &str) -> Heads {
        let classes = spec.mix.iter().map(|class| &class.shaping);
        let of_run = spec.mix.is_empty().then_some(&spec.shaping);
        let heads = classes.chain(of_run).map(|shaping| Head::new(spec, shaping, target)).collect();
        Heads { heads, id_prefix: id_prefix.to_owned() }
    }

    /// Returns the head of request `number` of a class, whose body has `length` bytes.
    pub(crate) fn request(&self, class: usize, number: u64, length: usize) -> Request<()> {
        let Head { uri, fields } = &self.heads[class];
        let mut request = Request::new(());
        *request.method_mut() = Method::POST;
        *request.version_mut() = Version::HTTP_2;
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = fields.clone();
        request.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        // This always succeeds, because a valid header value remains valid when digits are appended.
        if let Ok(mut id) = HeaderValue::try_from(format!("{}-{number}", self.id_prefix)) {
            // Each id occurs only once. In the header compressor's table it would only displace values that
            // repeat, so it is marked as sensitive, which keeps it out of the table.
            id.set_sensitive(true);
            request.headers_mut().insert(HeaderName::from_static("x-request-id"), id);
        }
        request
    }
}

impl Head {
    fn new(spec: &RunSpec, shaping: &Shaping, target: &Target) -> Head {
        let path = target.route.address().of_api(spec.endpoint.api.protocol().path());
        let checked = "the parts of the address were checked when it was read";
        let uri = target.route.http2_uri(&path).parse().expect(checked);
        let mut map = HeaderMap::new();
        for Field { name, value, is_secret } in fields(spec.endpoint.api, shaping, target) {
            // Invalid header fields are omitted, as over HTTP/1.1.
            if let (Ok(name), Ok(mut value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                value.set_sensitive(is_secret);
                map.append(name, value);
            }
        }
        Head { uri, fields: map }
    }
}
