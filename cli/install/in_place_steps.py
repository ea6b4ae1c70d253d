"""In which order the files are put in place, and how each step is taken back; pure."""

from api import names
from cli.install import in_place_files as files

_STEPS = """# The extender in place: steps for every control-plane node

{done}

Take one node after the other, the one whose kube-scheduler leads last. On each, the extender
comes first and the scheduler only when the extender is ready: a scheduler that calls an extender
which is not there places nothing.

## Once per cluster

1. Install Koord without a scheduler of its own, which makes the ServiceAccount
   {namespace}/{account} and what it may do:

       helm upgrade --install koord <chart> -n {namespace} --create-namespace \\
         --set image.repository=... --set scheduler.mode=in-place

2. Make the object that the extender's tokens are bound to:

       kubectl apply -f {output}/cluster/login.yaml

   Back: `kubectl delete -f {output}/cluster/login.yaml` revokes every token at once.

## On each control-plane node, as root

3. Put the files there; `{output}/node` has the layout of the node. Only the extender's user may
   read its folder, only root the scheduler's (where kube-scheduler is not root: its user):

       cp -r {output}/node/etc/kubernetes/koord /etc/kubernetes/
       cp /etc/kubernetes/pki/ca.crt {folder}/extender/{cluster_ca}
       mkdir -p {login}
       kubectl --kubeconfig /etc/kubernetes/admin.conf -n {namespace} \\
         create token {account} --duration={duration} \\
         --bound-object-kind=Secret --bound-object-name={secret} > {login}/{token}
       chown -R {user}:{user} {folder}/extender {login}
       chmod 700 {folder}/extender {folder}/scheduler {login}

   The token expires after {duration}; the extender renews it after a third of that. An extender
   that was away for longer needs a new one: repeat the lines from `mkdir` on.

   Back: `rm -r {folder}`.

4. Start the extender and wait until it is ready:

       cp {output}/node{manifests}/{account}.yaml {manifests}/
       until curl -fsS http://127.0.0.1:{health_port}/readyz; do sleep 1; done

   Back: `rm {manifests}/{account}.yaml`, but only after step 6 was taken back.

5. Try the configuration without running it, with a kube-scheduler binary of the cluster's release;
   it prints the completed configuration or says what is wrong:

       kube-scheduler --config {folder}/scheduler/config.yaml --secure-port 0 \\
         --write-config-to /dev/stdout

6. Let the scheduler call it. Keep the manifest as it is now outside of {manifests}, which the
   kubelet would run as well:

       cp {manifests}/kube-scheduler.yaml /etc/kubernetes/kube-scheduler.before-koord.yaml
       kubectl patch --local --type json -o yaml -f {manifests}/kube-scheduler.yaml \\
         --patch-file {output}/patches/{patch} > /etc/kubernetes/kube-scheduler.next.yaml
       mv /etc/kubernetes/kube-scheduler.next.yaml {manifests}/kube-scheduler.yaml

   or, the same with kubeadm: `kubeadm init phase control-plane scheduler --patches
   {output}/patches`. From then on pass `--patches` to every `kubeadm upgrade`.

   Back: `mv /etc/kubernetes/kube-scheduler.before-koord.yaml {manifests}/kube-scheduler.yaml`.

7. See that pods are placed: a new pod carries the annotation {placement}.

## The way back

The other way round, on every node first step 6, and when that scheduler runs again step 4, then
step 3; at last step 2 and `helm uninstall`. Between 6 and 4 nothing waits for the extender any
more, so no pod is held up at any time.

## Certificates

The authority lives {authority_years:.0f} years, what it signs {leaf_days:.0f} days. The next
thing is due on {due}: run the same command on the same folder again, which renews what has lived
two thirds of its life and leaves the rest, and repeat the first command and the last two of step 3.
Nothing needs a restart: the extender looks at its files every ten seconds, kube-scheduler reads
its own at each new connection. Only when the authority changed, restart kube-scheduler once (move
its manifest out of {manifests} and back); old and new authority overlap until then.

`{output}/pki` holds the keys of the authority: keep it off the nodes and out of version control.
"""


def text(node: files.Node, *, output: str, done: str, due: str, lives: tuple[float, float]) -> str:
    """Return the steps; `lives` are the seconds that an authority and a certificate live."""
    day = 24 * 3600.0
    return _STEPS.format(
        done=done,
        due=due,
        output=output,
        namespace=node.namespace,
        account=files.ACCOUNT,
        folder=files.FOLDER,
        cluster_ca=files.CLUSTER_CA,
        token=files.TOKEN,
        login=files.LOGIN,
        secret=files.LOGIN_SECRET,
        duration=files.LOGIN_DURATION,
        user=files.USER,
        manifests=files.MANIFESTS,
        health_port=node.health_port,
        patch=files.PATCH,
        placement=names.PLACEMENT,
        authority_years=lives[0] / day / 365,
        leaf_days=lives[1] / day,
    )
