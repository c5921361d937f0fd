//! Tests the harness itself.

use lab::measured::a_failure_on_a_busy_machine_is_no_judgement;

lab::measured_tests![a_failure_on_a_busy_machine_is_no_judgement];
