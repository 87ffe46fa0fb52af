import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import { manifestOf, ROOT } from './packages.ts'

const DEPLOY = join(ROOT, 'examples/deploy')
/** From the end of the notice to the exit, at most: calls, drained calls, and what is written at last. */
const STOPS_WITHIN_S = 80
const NOTICE_S = 5
/** Of a migration, at most: what it waits for locks, and its longest statement. */
const MIGRATES_WITHIN_S = 1200

const read = (file: string): string => readFileSync(join(DEPLOY, file), 'utf8')
const words = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(([, word = '']) => word)
const distinct = (names: readonly string[]): string[] => [...new Set(names)].sort()

const sources = globSync('examples/gateway/*.ts', { cwd: ROOT }).map((file) =>
  readFileSync(join(ROOT, file), 'utf8'),
)
/** The variables that the gateway reads. */
const OF_THE_GATEWAY = distinct(sources.flatMap((source) => words(source, /\benv(?:\.|, ')([A-Z][A-Z_]+)/g)))
/** The variables that the config names. */
const OF_THE_CONFIG = distinct(words(read('config/gateway.yaml'), /: env:([A-Z_]+)/g))
/** Those of Node and Express. */
const OF_NODE = ['NODE_ENV']
const KNOWN = new Set([...OF_THE_GATEWAY, ...OF_THE_CONFIG, ...OF_NODE])

const { gateway, postgres, redis } = parse(read('compose.yaml')).services
const [deployment, service, budget] = parseAllDocuments(read('kubernetes.yaml')).map((document) =>
  document.toJS(),
)
const { template } = deployment.spec
const [container] = template.spec.containers
const unit = read('express-model-gateway.service')
const dockerfile = read('Dockerfile')
const page = read('README.md')

/** Each variable that a deployment sets, by where. */
const SET: Readonly<Record<string, readonly string[]>> = {
  Dockerfile: words(dockerfile, /^ENV (.+)$/gm).flatMap((line) => words(line, /(\w+)=/g)),
  'compose.yaml': Object.keys(gateway.environment),
  'kubernetes.yaml': container.env.map(({ name }: { name: string }) => name),
  'the Secret of README.md': words(page, /--from-literal=([A-Z_]+)=/g),
  'the unit': words(unit, /^Environment=(\w+)=/gm),
}

describe('the deployments of examples/deploy', () => {
  test('the gateway reads every variable that they set', () => {
    assert.ok(OF_THE_GATEWAY.includes('DATABASE_URL') && OF_THE_CONFIG.includes('OPENAI_API_KEY'))
    for (const [where, names] of Object.entries(SET)) {
      assert.ok(names.length > 0, where)
      assert.deepEqual(
        names.filter((name) => !KNOWN.has(name)),
        [],
        where,
      )
    }
  })

  test('compose and the Secret of Kubernetes have every secret that the config names, and both stores', () => {
    for (const where of ['compose.yaml', 'the Secret of README.md'])
      for (const name of [...OF_THE_CONFIG, 'ADMIN_TOKEN', 'DATABASE_URL', 'REDIS_URL'])
        assert.ok(SET[where]?.includes(name), `${where}: ${name}`)
  })

  test('.env.example has what compose asks for, without values, and nothing else', () => {
    const asked = distinct(words(read('compose.yaml'), /\$\{([A-Z_]+):\?\}/g))
    assert.deepEqual(words(read('.env.example'), /^([A-Z_]+)=$/gm).sort(), asked)
  })

  test('what stops the gateway waits until it has ended', () => {
    const preStop = Number(container.lifecycle.preStop.exec.command[1])
    const { value } = container.env.find(({ name }: { name: string }) => name === 'SHUTDOWN_NOTICE_MS')
    assert.ok(template.spec.terminationGracePeriodSeconds >= preStop + value / 1000 + STOPS_WITHIN_S)
    assert.ok(Number.parseInt(gateway.stop_grace_period, 10) >= NOTICE_S + STOPS_WITHIN_S)
    assert.ok(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]) >= NOTICE_S + STOPS_WITHIN_S)
    assert.match(unit, /^KillMode=mixed$/m)
  })

  test('a start is not killed while it migrates', () => {
    const { periodSeconds, failureThreshold } = container.startupProbe
    assert.ok(periodSeconds * failureThreshold >= MIGRATES_WITHIN_S)
    assert.equal(/^TimeoutStartSec|^Type=notify/m.exec(unit), null)
  })

  test('the port is that of the image everywhere', () => {
    const port = Number(/^ENV .*PORT=(\d+)/m.exec(dockerfile)?.[1])
    assert.equal(Number(/^EXPOSE (\d+)$/m.exec(dockerfile)?.[1]), port)
    assert.deepEqual(gateway.ports, [`127.0.0.1:${port}:${port}`])
    assert.ok(gateway.healthcheck.test.join(' ').includes(`:${port}/readyz`))
    assert.deepEqual(container.ports, [{ name: 'http', containerPort: port }])
    assert.equal(service.spec.ports[0].targetPort, 'http')
  })

  test('compose starts the gateway behind healthy stores, and has a check for each service', () => {
    assert.deepEqual(Object.keys(gateway.depends_on), ['postgres', 'redis'])
    for (const { condition } of Object.values<{ condition: string }>(gateway.depends_on))
      assert.equal(condition, 'service_healthy')
    for (const { healthcheck } of [gateway, postgres, redis]) assert.equal(healthcheck.test[0], 'CMD')
  })

  test('Kubernetes finds the pods by one label, keeps one of them, and runs a user that is not root', () => {
    const labels = { app: 'express-model-gateway' }
    assert.deepEqual(
      [deployment.kind, service.kind, budget.kind],
      ['Deployment', 'Service', 'PodDisruptionBudget'],
    )
    assert.deepEqual(template.metadata.labels, labels)
    assert.deepEqual(deployment.spec.selector.matchLabels, labels)
    assert.deepEqual(service.spec.selector, labels)
    assert.deepEqual(budget.spec.selector.matchLabels, labels)
    assert.ok(deployment.spec.replicas > budget.spec.minAvailable)
    assert.equal(template.spec.securityContext.runAsNonRoot, true)
    assert.match(dockerfile, /^USER [1-9]\d*:/m)
    assert.equal(container.readinessProbe.httpGet.path, '/readyz')
    assert.notEqual(container.livenessProbe.httpGet.path, '/readyz')
    assert.ok(container.image.endsWith(`:${manifestOf('server').version}`), container.image)
  })
})
