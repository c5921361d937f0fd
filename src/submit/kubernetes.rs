//! Creates a Kubernetes Job for each element, as YAML.
//!
//! A pod contains the client. If the plan launches the server, sweepline starts the server in the same pod; a
//! server that the plan reaches by its `url` is a Service. The plan is in a ConfigMap, with all values
//! spelled out; results go to a PersistentVolumeClaim. Manifests use only the stable API (`batch/v1`, `v1`),
//! with fields that exist in every version since 1.29.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::Element;
use crate::plan::Plan;
use crate::plan::model::secret_references::secret_references;
use crate::plan::model::{Memory, Pod, Resources, SecretRef, Toleration, mount_of};
use crate::units::Nanos;

/// Maximum number of new pods that a Job starts after exit codes for which a retry may help.
const RETRIES: u32 = 3;
/// Time for a pod to shut down cleanly, in seconds.
const GRACE: u32 = 120;
/// Mount path of the plan.
const PLAN: &str = "/sweepline/plan";
/// Mount path of the results.
const RESULTS: &str = "/sweepline/results";
/// Maximum number of bytes in a ConfigMap.
const MOST_BYTES: usize = 1 << 20;

/// Values that all manifests of one submission share.
#[derive(Debug, Clone)]
pub struct Shared<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The name of all jobs, which `status` uses to find them.
    pub job_name: &'a str,
    /// The number of the submission.
    pub number: u32,
    /// Digits of a digest of the open runs. They distinguish plans that have the same name.
    pub digest: String,
}

impl Shared<'_> {
    /// Returns the name of the Job of the element at this position; with `None`, returns the name
    /// of the ConfigMap.
    pub fn name(&self, at: Option<usize>) -> String {
        let end = at.map_or_else(|| "plan".to_owned(), |at| at.to_string());
        format!("{}-{}-{}-{end}", self.job_name, self.digest, self.number)
    }

    fn labels(&self) -> Value {
        json!({ "app.kubernetes.io/name": "sweepline", "app.kubernetes.io/instance": self.job_name })
    }

    /// Returns the ConfigMap with the plan, or the reason why it cannot be created.
    pub fn config_map(&self, text: &str) -> Result<String, String> {
        if text.len() >= MOST_BYTES {
            let has = text.len();
            return Err(format!(
                "the plan with all values spelled out has {has} bytes, but a ConfigMap holds at most {MOST_BYTES}"
            ));
        }
        yaml(&json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": self.name(None), "labels": self.labels() },
            "data": { "plan.yaml": text },
        }))
    }

    /// Returns the Job of an element, or the reason why it cannot be created.
    pub fn job(&self, at: usize, element: &Element) -> Result<String, String> {
        let (needs, part) = (&element.resources, &element.part);
        let none = Pod::default();
        let pod = needs.kubernetes.as_ref().unwrap_or(&none);
        let missing = |key: &str, like: &str| {
            let endpoint = &part.endpoints[0];
            format!(
                "endpoint `{endpoint}` has no {key} for Kubernetes: add resources: {{ kubernetes: {{ {key}: {like} }} }} to it"
            )
        };
        let image = pod.image.as_ref().ok_or_else(|| missing("image", "registry.example.org/sweepline:1"))?;
        let claim = pod.claim.as_ref().ok_or_else(|| missing("claim", "results"))?;
        let variables = secret_variables(self.plan, element)?;
        if let (Some(variable), None) = (variables.first(), &pod.secret) {
            let also = missing("secret", "sweepline");
            return Err(format!(
                "the plan reads a secret from {variable}, but {also}; that Secret needs a key {variable}"
            ));
        }
        let env: Vec<Value> = variables
            .iter()
            .map(|name| json!({ "name": name, "valueFrom": { "secretKeyRef": { "name": pod.secret, "key": name } } }))
            .collect();
        let mut command =
            vec!["run".to_owned(), format!("{PLAN}/plan.yaml"), "--results".to_owned(), RESULTS.to_owned()];
        command.extend(["--part".to_owned(), part.name.clone()]);
        command.extend(element.only().into_iter().flat_map(|only| ["--only".to_owned(), only]));
        command.extend(["--progress".to_owned(), "plain".to_owned()]);
        let mut mounts = vec![
            json!({ "name": "plan", "mountPath": PLAN, "readOnly": true }),
            json!({ "name": "results", "mountPath": RESULTS }),
        ];
        let mut volumes = vec![
            json!({ "name": "plan", "configMap": { "name": self.name(None) } }),
            json!({ "name": "results", "persistentVolumeClaim": { "claimName": claim } }),
        ];
        if needs.gpus.is_some_and(|gpus| gpus > 0) {
            // The workers of a server on several GPUs communicate over shared memory, of which a pod has
            // only 64 MiB by default.
            mounts.push(json!({ "name": "shm", "mountPath": "/dev/shm" }));
            volumes.push(json!({ "name": "shm", "emptyDir": { "medium": "Memory" } }));
        }
        let container = json!({
            "name": "sweepline",
            "image": image,
            "command": ["sweepline"],
            "args": command,
            "env": env,
            "resources": resources(needs, pod),
            "volumeMounts": mounts,
        });
        let spec = json!({
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": GRACE,
            "serviceAccountName": pod.service_account,
            "nodeSelector": pod.node_selector,
            "tolerations": pod.tolerations.iter().map(toleration).collect::<Vec<_>>(),
            "containers": [container],
            "volumes": volumes,
        });
        yaml(&json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": self.name(Some(at)),
                "labels": self.labels(),
                "annotations": { "sweepline/element": element.name() },
            },
            "spec": {
                "backoffLimit": RETRIES,
                "activeDeadlineSeconds": needs.time.map(seconds),
                "podFailurePolicy": failures(),
                "template": { "metadata": { "labels": self.labels() }, "spec": spec },
            },
        }))
    }
}

/// Returns the pod failure policy of a Job. All failure codes of `run` are final, except 6 (something is
/// missing that may exist at the next try) and 130 (interrupted). A pod that was lost with its node does not
/// count as a try.
fn failures() -> Value {
    let codes = json!({ "containerName": "sweepline", "operator": "In", "values": [1, 2, 3, 4, 5] });
    let lost = json!([{ "type": "DisruptionTarget", "status": "True" }]);
    json!({ "rules": [
        { "action": "FailJob", "onExitCodes": codes },
        { "action": "Ignore", "onPodConditions": lost },
    ] })
}

/// Returns the resources of the container. Memory and GPUs are both requested and limited. CPU cores are only
/// requested, because a quota would pause the client during a measurement.
fn resources(needs: &Resources, pod: &Pod) -> Value {
    let memory = quantity(needs.memory());
    let mut limits = Map::from_iter([("memory".to_owned(), json!(memory))]);
    let gpus = needs.gpus.filter(|gpus| *gpus > 0);
    limits.extend(gpus.map(|gpus| (pod.gpu.as_deref().unwrap_or(Resources::GPU).to_owned(), json!(gpus))));
    let mut requests = limits.clone();
    requests.insert("cpu".to_owned(), json!(needs.cpus()));
    json!({ "requests": requests, "limits": limits })
}

/// Formats an amount of memory for Kubernetes.
fn quantity(Memory(bytes): Memory) -> String {
    let units = [("Gi", 1 << 30), ("Mi", 1 << 20), ("G", 1_000_000_000), ("M", 1_000_000)];
    let unit = units.iter().find(|(_, size)| bytes > 0 && bytes.is_multiple_of(*size));
    unit.map_or(bytes.to_string(), |(unit, size)| format!("{}{unit}", bytes / size))
}

fn toleration(Toleration { key, value, effect }: &Toleration) -> Value {
    let operator = if value.is_some() { "Equal" } else { "Exists" };
    json!({ "key": key, "operator": operator, "value": value, "effect": effect })
}

fn seconds(time: Nanos) -> u64 {
    time.0.div_ceil(1_000_000_000)
}

/// Returns the names of the environment variables with the secrets that an element needs. Secrets of
/// endpoints outside the element's part are not needed.
fn secret_variables(plan: &Plan, element: &Element) -> Result<BTreeSet<String>, String> {
    let mut plan = plan.clone();
    plan.endpoints.retain(|name, _| element.part.has(name));
    secret_references(&plan).into_iter().filter_map(|reference| variable(reference).transpose()).collect()
}

/// Returns the environment variable that a secret needs in a pod; `None` if it needs none, because the secret is
/// mounted, or printed by a program of the image. Fails if a pod cannot have the secret.
fn variable(reference: SecretRef) -> Result<Option<String>, String> {
    match reference {
        SecretRef::Env(name) => Ok(Some(name)),
        SecretRef::File(path) if mount_of(&path).is_some() => Ok(None),
        SecretRef::File(_) => Err(format!(
            "a pod has no file for the secret {reference}: use {{ secret: env:NAME }}, or mount the file below \
             /run/secrets"
        )),
        SecretRef::Command(command) => {
            let program = command.command.0.first().map_or("", String::as_str);
            if program.contains('/') && !program.starts_with('/') {
                return Err(format!(
                    "a pod has no file for the token command `{command}`: install the program in the image, and write \
                     its name or its absolute path"
                ));
            }
            Ok(None)
        }
    }
}

/// Returns the text of a manifest, without unset fields.
fn yaml(manifest: &Value) -> Result<String, String> {
    serde_yaml::to_string(&set(manifest)).map_err(|error| error.to_string())
}

fn set(value: &Value) -> Value {
    let is_set = |value: &Value| match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(table) => !table.is_empty(),
        _ => true,
    };
    match value {
        Value::Object(table) => {
            let kept = table.iter().map(|(key, value)| (key.clone(), set(value)));
            Value::Object(kept.filter(|(_, value)| is_set(value)).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(set).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn amounts_of_memory_are_quantities() {
        let quantity = |text: &str| super::quantity(text.parse().expect("memory"));
        assert_eq!(["8GiB", "200GB", "1MiB", "1500kB", "7B"].map(quantity), ["8Gi", "200G", "1Mi", "1500000", "7"]);
    }
}
