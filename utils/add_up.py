# SPDX-License-Identifier: Apache-2.0
"""Adds up the JSON results that utils/check collected: lit's, GoogleTest's, and {"passed", "failed", "skipped"}.

Names of failed tests go before the last line, `N passed, N failed, N skipped`. A file without a test is a failure. The
exit status is 1 if any failed or if nothing passed at all.
"""
import json
import pathlib
import sys


def lit(results):
    good, skipped = {"PASS", "XFAIL", "FLAKYPASS"}, {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}
    for test in results["tests"]:
        yield test["name"], "passed" if test["code"] in good else "skipped" if test["code"] in skipped else "failed"


def googletest(results):
    for suite in results["testsuites"]:
        for test in suite["testsuite"]:
            ran = test.get("status") == "RUN" and test.get("result") == "COMPLETED"
            outcome = "failed" if test.get("failures") else "passed" if ran else "skipped"
            yield f"{suite['name']}.{test['name']}", outcome


def outcomes(path):
    try:
        results = json.loads(path.read_text())
    except ValueError:
        results = {"crashed": f"{path.stem} (its results cannot be read)"}
    if "crashed" in results:
        yield results["crashed"], "failed"
    elif "testsuites" in results:
        yield from googletest(results)
    elif "__version__" in results:
        yield from lit(results)
    else:
        for outcome in ("passed", "failed", "skipped"):
            names = results.get(outcome, [])
            for name in names if isinstance(names, list) else [path.stem] * names:
                yield name, outcome


def main():
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.json")):
        for name, outcome in list(outcomes(path)) or [(f"{path.stem} (nothing ran)", "failed")]:
            counts[outcome] += 1
            if outcome == "failed":
                print(f"failed: {name}")
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    sys.exit(counts["failed"] > 0 or counts["passed"] == 0)


main()
