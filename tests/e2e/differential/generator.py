"""Requests by seed: each episode works on objects of its own and meets every verb."""

import json
import random

from tests.e2e.differential import bodies, changes, steps

POLICIES = ("Background", "Foreground", "Orphan", "Sideways")
VALIDATIONS = ("Ignore", "Warn", "Strict", "Sometimes")
SELECTORS = (
    "app=x", "app!=x", "app", "!app", "app in (x,y)", "app notin (x)", "a=b,app=x", "a in (b",
    "=x", "a b", "a=b c", "x>1",
)  # fmt: skip
FIELD_SELECTORS = (
    "metadata.name={name}", "metadata.namespace={namespace}", "metadata.name!={name}",
    "spec.nodeName=n", "spec.unheard=of", "status.phase=Pending", "metadata.name", "type=Normal",
)  # fmt: skip


class Episode:
    """The requests of one seed."""

    def __init__(self, seed, length):
        self.namespace = f"d{seed}"
        self._chance = random.Random(seed)
        self._length = length
        self._serial = 0

    def stories(self):
        """The lives of the objects, one after another; each is a list of requests."""
        yield [
            self._simple(
                "create", "POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}}
            )
        ]
        made = 0
        while made < self._length:
            story = list(self._story())
            made += len(story)
            yield story

    def _story(self):
        """The life of one object."""
        plural = self._chance.choice((*bodies.KINDS, "pods", "pods", "configmaps", "widgets"))
        self._serial += 1
        name = f"{self.namespace}-{self._serial}"
        yield from self._births(plural, name)
        tellers = (
            self._updates,
            self._patches,
            self._applies,
            self._statuses,
            self._reads,
            self._oddities,
        )
        for _ in range(self._chance.randrange(3, 7)):
            yield from self._chance.choice(tellers)(plural, name)
        if plural == "pods":
            yield from self._actions(name)
        yield from self._deaths(plural, name)

    # The parts of a life

    def _births(self, plural, name):
        """Bad beginnings, then a good one."""
        collection, subject = self.collection(plural), self._path(plural, name)
        for _ in range(self._chance.randrange(3)):
            body = bodies.merged(self._made(plural, name), self._bad(plural))
            query = self._some(("fieldValidation", VALIDATIONS), ("dryRun", ("All", "Some")))
            yield steps.Step("create bad", "POST", collection, subject, body, query)
        body = self._made(plural, name)
        for change in self._chance.sample(range(3), self._chance.randrange(3)):
            del change
            body = bodies.merged(body, self._good(plural))
        query = self._some(("fieldManager", ("one", "two")))
        yield steps.Step("create", "POST", collection, subject, body, query)
        if self._chance.random() < 0.2:
            yield steps.Step("create again", "POST", collection, subject, body)

    def _updates(self, plural, name):
        change = self._change(plural)

        def body(current):
            return bodies.merged(current, change)

        query = self._some(("fieldManager", ("one", "two")), ("fieldValidation", VALIDATIONS))
        path = self._path(plural, name)
        yield steps.Step("update", "PUT", path, path, body, query)
        kind = self._chance.randrange(6)
        odd = {
            0: {"metadata": {"resourceVersion": "1"}},
            1: {"metadata": {"resourceVersion": ""}},
            2: {"metadata": {"uid": "0-0"}},
            3: {"metadata": {"name": "another"}},
            4: {"metadata": {"namespace": "another"}},
            5: {"metadata": {"resourceVersion": "text"}},
        }[kind]
        words = (
            "old version",
            "no version",
            "wrong uid",
            "wrong name",
            "wrong namespace",
            "bad version",
        )

        def odd_body(current):
            return bodies.merged(bodies.merged(current, change), odd)

        yield steps.Step(f"update with {words[kind]}", "PUT", path, path, odd_body)

    def _patches(self, plural, name):
        path = self._path(plural, name)
        change = self._change(plural)
        query = self._some(("fieldManager", ("one", "two")), ("fieldValidation", VALIDATIONS[:3]))
        media = self._chance.choice((steps.MERGE, steps.STRATEGIC))
        title = "merge patch" if media == steps.MERGE else "strategic patch"
        yield steps.Step(title, "PATCH", path, path, change, query, media)
        operations = self._operations(plural, change)
        yield steps.Step("json patch", "PATCH", path, path, operations, query, steps.JSON_PATCH)
        if self._chance.random() < 0.3:
            yield self._special(plural, path)

    def _special(self, plural, path):
        """Directives of strategic patches, preconditions, and patches that are no patches."""
        kinds = (
            (steps.STRATEGIC, {"metadata": {"labels": {"$patch": "replace", "only": "this"}}}),
            (steps.STRATEGIC, {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}}),
            (
                steps.STRATEGIC,
                {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}},
            ),
            (
                steps.STRATEGIC,
                {"spec": {"containers": [{"name": "c", "$patch": "delete"}]}},
            ),
            (steps.STRATEGIC, {"spec": {"containers": [{"image": "nameless"}]}}),
            (steps.STRATEGIC, {"metadata": {"$patch": "explode"}}),
            (steps.MERGE, {"metadata": {"resourceVersion": "1", "labels": {"x": "y"}}}),
            (steps.MERGE, {"metadata": {"uid": "0-0"}}),
            (steps.MERGE, {"metadata": {"name": "another"}}),
            (steps.MERGE, []),
            (steps.MERGE, {}),
            (steps.MERGE, b"{"),
            (steps.JSON_PATCH, {}),
            (steps.JSON_PATCH, [{"op": "explode", "path": "/metadata"}]),
            (steps.JSON_PATCH, [{"op": "test", "path": "/metadata/name", "value": "other"}]),
            (steps.JSON_PATCH, [{"op": "remove", "path": "/metadata/labels/absent"}]),
            (steps.JSON_PATCH, [{"op": "replace", "path": "/absent/below", "value": 1}]),
            (steps.JSON_PATCH, [{"op": "replace", "path": "", "value": []}]),
            ("application/x-patch", {}),
        )
        media, body = self._chance.choice(kinds)
        return steps.Step(f"odd {media.partition('/')[2]}", "PATCH", path, path, body, (), media)

    def _operations(self, plural, change):
        """A JSON patch that says the same as a merge patch."""
        del plural
        return list(changes.operations(change, ""))

    def _applies(self, plural, name):
        """Two managers, one of which may insist."""
        path = self._path(plural, name)
        for manager in self._chance.sample(("one", "two", "one", "two"), 3):
            body = self._bare(plural, name)
            body = bodies.merged(body, self._change(plural, bad=0.15))
            query = [("fieldManager", manager)]
            if self._chance.random() < 0.4:
                query.append(("force", "true"))
            if self._chance.random() < 0.05:
                query = []
            step = steps.Step("apply", "PATCH", path, path, body, tuple(query), steps.APPLY)
            yield step
            if self._chance.random() < 0.4:
                yield step

    def _statuses(self, plural, name):
        path = f"{self._path(plural, name)}/status"
        change = self._chance.choice(
            (
                {"status": {"phase": "Running"}},
                {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
                {"status": {"unheard": "of"}},
                {"status": "text"},
                {"status": {"conditions": [{"type": "Ready", "status": 1}]}},
                {"metadata": {"labels": {"from": "status"}}, "status": {"phase": "Pending"}},
                {"spec": {"replicas": 7, "unschedulable": True}},
                {"status": {"replicas": 3, "observedGeneration": 1}},
            )
        )
        subject = self._path(plural, name)
        if self._chance.random() < 0.5:
            yield steps.Step("patch status", "PATCH", path, subject, change, (), steps.MERGE)
        else:

            def body(current):
                return bodies.merged(current, change)

            yield steps.Step("update status", "PUT", path, subject, body)

    def _reads(self, plural, name):
        collection = self.collection(plural)
        if not bodies.KINDS[plural][1]:
            # Others work on cluster-scoped objects at the same time.
            yield self._simple("get absent", "GET", f"{collection}/absent-{name}")
            return
        kind = self._chance.randrange(7)
        selector = self._chance.choice(SELECTORS)
        field = self._chance.choice(FIELD_SELECTORS).format(name=name, namespace=self.namespace)
        query = {
            0: (),
            1: (("labelSelector", selector),),
            2: (("fieldSelector", field),),
            3: (("limit", "1"),),
            4: (("limit", "many"),),
            5: (("resourceVersion", "0"), ("resourceVersionMatch", "Exact")),
            6: (("continue", "nonsense"),),
        }[kind]
        yield steps.Step("list", "GET", collection, "", None, query)
        yield self._simple("get absent", "GET", f"{collection}/absent")

    def _oddities(self, plural, name):
        """Requests that no client should send."""
        collection, path = self.collection(plural), self._path(plural, name)
        kind = self._chance.randrange(9)
        body = self._chance.choice(bodies.NONSENSE)
        good = self._made(plural, name)
        yield (
            steps.Step("create nonsense", "POST", collection, "", body),
            steps.Step("update nonsense", "PUT", path, path, body),
            steps.Step(
                "apply nonsense", "PATCH", path, path, body, (("fieldManager", "one"),), steps.APPLY
            ),
            steps.Step("post to an object", "POST", path, path, good),
            steps.Step("put to a collection", "PUT", collection, "", good),
            steps.Step("unknown media", "POST", collection, "", b"x", (), "text/plain"),
            steps.Step("unknown resource", "GET", f"{collection}x", ""),
            steps.Step("unknown subresource", "GET", f"{path}/unheard", path),
            steps.Step(
                "create in no namespace",
                "POST",
                collection.replace(self.namespace, "absent"),
                "",
                self._made(plural, f"{name}-absent"),
            )
            if bodies.KINDS[plural][1]
            else steps.Step("get absent", "GET", f"{collection}/absent", ""),
        )[kind]

    def _actions(self, name):
        """Bindings and evictions."""
        path = self._path("pods", name)
        binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "node-x"}}
        odd = self._chance.choice(
            (
                {"metadata": {"uid": "0-0"}},
                {"metadata": {"name": "another"}},
                {"metadata": {"resourceVersion": "1"}},
                {"target": {"name": ""}},
                {"target": {"kind": "Rack", "name": "r"}},
                {"target": "node"},
                {"unheard": 1},
                {"metadata": {"annotations": {"a": "b"}, "labels": {"c": "d"}}},
            )
        )
        if self._chance.random() < 0.6:
            yield steps.Step(
                "odd binding", "POST", f"{path}/binding", path, bodies.merged(binding, odd)
            )
        if self._chance.random() < 0.6:
            yield steps.Step("binding", "POST", f"{path}/binding", path, binding)
        eviction = {"metadata": {"name": name}}
        options = self._chance.choice(
            (
                {},
                {"deleteOptions": {"gracePeriodSeconds": 5}},
                {"deleteOptions": {"preconditions": {"uid": "0-0"}}},
                {"deleteOptions": {"preconditions": {"resourceVersion": "1"}}},
                {"deleteOptions": {"dryRun": ["All"]}},
                {"metadata": {"name": "another"}},
                {"deleteOptions": "none"},
            )
        )
        if self._chance.random() < 0.5:
            running = {"status": {"phase": "Running"}}
            yield steps.Step(
                "patch status", "PATCH", f"{path}/status", path, running, (), steps.MERGE
            )
        if self._chance.random() < 0.6:
            yield from self._budget(name)
            yield steps.Step(
                "eviction", "POST", f"{path}/eviction", path, bodies.merged(eviction, options)
            )

    def _budget(self, name):
        """Sometimes a budget that covers the pod, with or without room."""
        if self._chance.random() < 0.6:
            return
        labels = {"metadata": {"labels": {"covered": name}}}
        path = self._path("pods", name)
        yield steps.Step("merge patch", "PATCH", path, path, labels, (), steps.MERGE)
        budget = self._made("poddisruptionbudgets", name)
        budget["spec"] = {"minAvailable": 1, "selector": {"matchLabels": {"covered": name}}}
        place = self._path("poddisruptionbudgets", name)
        yield steps.Step("create", "POST", self.collection("poddisruptionbudgets"), place, budget)
        status = {
            "status": {
                "disruptionsAllowed": self._chance.randrange(2),
                "currentHealthy": 1,
                "desiredHealthy": 1,
                "expectedPods": 1,
                "observedGeneration": 1,
            }
        }
        yield steps.Step("patch status", "PATCH", f"{place}/status", place, status, (), steps.MERGE)

    def _deaths(self, plural, name):
        path = self._path(plural, name)
        odd = self._chance.choice(
            (
                {"preconditions": {"uid": "0-0"}},
                {"preconditions": {"resourceVersion": "1"}},
                {"propagationPolicy": "Sideways"},
                {"gracePeriodSeconds": "none"},
                {"unheard": 1},
                {"dryRun": ["All"]},
                {"kind": "Nothing"},
                {"orphanDependents": True, "propagationPolicy": "Foreground"},
            )
        )
        if self._chance.random() < 0.5:
            yield steps.Step("odd delete", "DELETE", path, path, odd)
        query = self._some(("propagationPolicy", POLICIES[:3]), ("gracePeriodSeconds", ("0", "3")))
        yield steps.Step("delete", "DELETE", path, path, None, query)
        if self._chance.random() < 0.5:
            yield steps.Step("delete again", "DELETE", path, path, None)
        if self._chance.random() < 0.4:
            added = {"metadata": {"finalizers": ["example.com/late"]}}
            yield steps.Step("late finalizer", "PATCH", path, path, added, (), steps.MERGE)
        bare = {"metadata": {"finalizers": None}}
        yield steps.Step("let go", "PATCH", path, path, bare, (), steps.MERGE)

    # Pieces

    def _bare(self, plural, name):
        """What a manager applies: identity, and what the kind cannot be without."""
        full = self._made(plural, name)
        needed = {key: full[key] for key in ("apiVersion", "kind", "metadata")}
        if plural in ("pods", "deployments", "replicasets", "poddisruptionbudgets"):
            needed["spec"] = full["spec"]
        if plural == "priorityclasses":
            needed["value"] = full["value"]
        if plural == "events":
            needed["involvedObject"] = full["involvedObject"]
        return json.loads(json.dumps(needed))

    def _made(self, plural, name):
        body = bodies.made(plural, name)
        if plural == "events":
            body["involvedObject"]["namespace"] = self.namespace
        return body

    def _simple(self, what, method, path, body=None):
        return steps.Step(what, method, path, "", body)

    def _good(self, plural):
        return self._chance.choice((*changes.METADATA, *changes.CHANGES[plural] * 2))

    def _bad(self, plural):
        return self._chance.choice((*changes.BAD_METADATA, *changes.BAD_CHANGES[plural] * 2))

    def _change(self, plural, bad=0.4):
        return self._bad(plural) if self._chance.random() < bad else self._good(plural)

    def _some(self, *choices):
        """Some of the parameters, each with one of its values."""
        return tuple(
            (key, self._chance.choice(values))
            for key, values in choices
            if self._chance.random() < 0.4
        )

    def collection(self, plural):
        """The path of a collection."""
        prefix, namespaced, *_ = bodies.KINDS[plural]
        return (
            f"{prefix}/namespaces/{self.namespace}/{plural}" if namespaced else f"{prefix}/{plural}"
        )

    def _path(self, plural, name):
        return f"{self.collection(plural)}/{name}"
