import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parse } from 'yaml'
import { cleaningUp } from '../../support/clean-up.ts'
import { manifestOf } from '../package/packages.ts'
import { CHART, ChartRenderer, LEAST, WITHOUT_GO } from './chart.ts'

const NAME = 'shop-express-model-gateway'
const SELECTOR = { 'app.kubernetes.io/name': 'express-model-gateway', 'app.kubernetes.io/instance': 'shop' }

describe('the Helm chart of examples/deploy', { skip: WITHOUT_GO }, () => {
  const cleanUp = cleaningUp()
  const chart = new ChartRenderer()
  cleanUp.after(() => chart.remove())

  test('has the version of the packages', () => {
    const { version, appVersion } = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'))
    assert.deepEqual([version, appVersion], [manifestOf('server').version, manifestOf('server').version])
  })

  test('makes a deployment with its config, a service and a disruption budget, and nothing else that was not asked for', () => {
    const manifests = chart.render(LEAST)
    assert.deepEqual(Object.keys(manifests).sort(), [
      'ConfigMap',
      'Deployment',
      'PodDisruptionBudget',
      'Service',
    ])
    for (const { metadata } of Object.values(manifests)) {
      assert.deepEqual([metadata.name, metadata.namespace], [NAME, 'prod'])
      assert.equal(metadata.labels['app.kubernetes.io/instance'], 'shop')
    }
    const { ConfigMap, Deployment, Service, PodDisruptionBudget } = manifests
    assert.equal(ConfigMap.data['gateway.yaml'].trim(), LEAST.config.trim())
    assert.equal(Deployment.spec.replicas, 2)
    assert.equal(PodDisruptionBudget.spec.maxUnavailable, 1)
    for (const selector of [
      Deployment.spec.selector.matchLabels,
      Service.spec.selector,
      PodDisruptionBudget.spec.selector.matchLabels,
    ])
      assert.deepEqual(selector, SELECTOR)
  })

  test('a pod has its config, both stores and all other variables of the Secret, and does not run as root', () => {
    const { spec } = chart.render(LEAST).Deployment.spec.template
    const [container] = spec.containers
    assert.equal(container.image, `registry.example/gateway:${manifestOf('server').version}`)
    assert.deepEqual(container.envFrom, [{ secretRef: { name: 'gateway-secrets' } }])
    for (const key of ['DATABASE_URL', 'REDIS_URL'])
      assert.deepEqual(
        container.env.find(({ name }: { name: string }) => name === key).valueFrom.secretKeyRef,
        { name: 'gateway-secrets', key },
      )
    assert.deepEqual(spec.volumes, [{ name: 'config', configMap: { name: NAME } }])
    assert.equal(spec.securityContext.runAsNonRoot, true)
    assert.equal(container.securityContext.readOnlyRootFilesystem, true)
  })

  test('one pod with SQLite and limits in memory has a volume, is never two, and may be evicted', () => {
    const { Deployment, PersistentVolumeClaim, ...others } = chart.render({
      ...LEAST,
      replicas: 1,
      database: 'sqlite',
      limits: 'memory',
    })
    assert.equal(others.PodDisruptionBudget, undefined)
    assert.equal(Deployment.spec.strategy.type, 'Recreate')
    const { spec } = Deployment.spec.template
    const [container] = spec.containers
    assert.ok(
      container.env.some(({ value }: { value?: string }) => value?.startsWith('sqlite:/opt/gateway/.data/')),
    )
    assert.deepEqual(container.volumeMounts[1], { name: 'data', mountPath: '/opt/gateway/.data' })
    assert.equal(spec.volumes[1].persistentVolumeClaim.claimName, PersistentVolumeClaim.metadata.name)
  })

  const REFUSED: readonly [what: string, values: object, message: RegExp][] = [
    ['several pods with SQLite', { database: 'sqlite' }, /database: several pods need "postgres"/],
    ['several pods with limits in memory', { limits: 'memory' }, /limits: several pods need "redis"/],
    [
      'an autoscaler with limits in memory',
      { replicas: 1, limits: 'memory', autoscaling: { enabled: true } },
      /limits: several pods need "redis"/,
    ],
    ['an unknown database', { database: 'mysql' }, /database: must be "postgres" or "sqlite"/],
    ['no Secret', { existingSecret: '' }, /existingSecret: is required/],
    ['no image', { image: { repository: '' } }, /image\.repository: is required/],
    ['no config', { config: '' }, /config: is required/],
    ['an ingress without a host', { ingress: { enabled: true } }, /ingress\.host: is required/],
  ]
  for (const [what, values, message] of REFUSED)
    test(`${what} is refused, with what to set`, () => {
      assert.throws(() => chart.render({ ...LEAST, ...values }), message)
    })

  test('an ingress leads to the port of callers only, and passes streams and uploads on as they come', () => {
    const { Ingress, Service } = chart.render({
      ...LEAST,
      ingress: { enabled: true, host: 'gateway.example', tlsSecret: 'certificate' },
    })
    const [{ host, http }] = Ingress.spec.rules
    assert.equal(host, 'gateway.example')
    assert.deepEqual(
      http.paths.map((path: { backend: object }) => path.backend),
      [{ service: { name: NAME, port: { name: 'http' } } }],
    )
    assert.deepEqual(Ingress.spec.tls, [{ hosts: ['gateway.example'], secretName: 'certificate' }])
    assert.equal(Service.spec.ports[0].name, 'http')
    const annotation = (name: string) => Ingress.metadata.annotations[`nginx.ingress.kubernetes.io/${name}`]
    assert.equal(annotation('proxy-buffering'), 'off')
    assert.equal(annotation('proxy-request-buffering'), 'off')
    assert.equal(annotation('proxy-body-size'), '0')
    assert.ok(Number(annotation('proxy-read-timeout')) > 600)
  })

  test('an autoscaler replaces the number of pods', () => {
    const { Deployment, HorizontalPodAutoscaler } = chart.render({
      ...LEAST,
      autoscaling: { enabled: true, maxReplicas: 20 },
    })
    assert.equal('replicas' in Deployment.spec, false)
    assert.equal(HorizontalPodAutoscaler.spec.scaleTargetRef.name, Deployment.metadata.name)
    assert.deepEqual(
      [HorizontalPodAutoscaler.spec.minReplicas, HorizontalPodAutoscaler.spec.maxReplicas],
      [2, 20],
    )
  })

  test('Prometheus scrapes the port of operators under the job that the alerts name', () => {
    const { ServiceMonitor, PrometheusRule, Service } = chart.render({
      ...LEAST,
      serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
      alerts: { enabled: true },
    })
    const [{ port, path }] = ServiceMonitor.spec.endpoints
    assert.equal(path, '/metrics')
    assert.ok(Service.spec.ports.some(({ name }: { name: string }) => name === port && name === 'admin'))
    assert.equal(ServiceMonitor.metadata.labels.release, 'prometheus')
    const job = Service.metadata.labels[ServiceMonitor.spec.jobLabel]
    const rules = PrometheusRule.spec.groups.flatMap(({ rules }: { rules: { expr: string }[] }) => rules)
    assert.ok(rules.length > 15)
    assert.ok(rules[0].expr.includes(`job="${job}"`))
  })
})
