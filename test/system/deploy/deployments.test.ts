import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parse } from 'yaml'
import { VARIABLES } from '../../../examples/gateway/config/environment.ts'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { openDatabase } from '../../../lib/stores/sql/index.ts'
import { ROOT } from '../package/packages.ts'
import { ChartRenderer, LEAST, WITHOUT_GO } from './chart.ts'

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

/** The variables that the gateway reads. */
const OF_THE_GATEWAY = Object.keys(VARIABLES.shape)
/** The variables that the config names. */
const OF_THE_CONFIG = distinct(words(read('config/gateway.yaml'), /: env:([A-Z_]+)/g))
/** The variables of Node and Express. */
const OF_NODE = ['NODE_ENV']
const KNOWN = new Set([...OF_THE_GATEWAY, ...OF_THE_CONFIG, ...OF_NODE])

const { gateway, postgres, redis } = parse(read('compose.yaml')).services
const unit = read('express-model-gateway.service')
const dockerfile = read('Dockerfile')
const page = read('README.md')

describe('the deployments of examples/deploy', { skip: WITHOUT_GO }, () => {
  const chart = new ChartRenderer()
  const { template } = chart.render(LEAST).Deployment.spec
  chart.remove()
  const [container] = template.spec.containers

  /** Each variable that a deployment sets, by where. */
  const SET: Readonly<Record<string, readonly string[]>> = {
    Dockerfile: words(dockerfile, /^ENV (.+)$/gm).flatMap((line) => words(line, /(\w+)=/g)),
    'compose.yaml': Object.keys(gateway.environment),
    'the chart': container.env.map(({ name }: { name: string }) => name),
    'the Secret of README.md': words(page, /--from-literal=([A-Z_]+)=/g),
    'the unit': words(unit, /^Environment=(\w+)=/gm),
  }

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

  test('the supervisor that stops the gateway waits until it has ended', () => {
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
    assert.deepEqual(container.ports[0], { name: 'http', containerPort: port })
  })

  test('compose starts the gateway behind healthy stores, and has a check for each service', () => {
    assert.deepEqual(Object.keys(gateway.depends_on), ['postgres', 'redis'])
    for (const { condition } of Object.values<{ condition: string }>(gateway.depends_on))
      assert.equal(condition, 'service_healthy')
    for (const { healthcheck } of [gateway, postgres, redis]) assert.equal(healthcheck.test[0], 'CMD')
  })

  test('pods are asked whether they are ready, restarted only if they are dead, and are not root', () => {
    assert.match(dockerfile, /^USER [1-9]\d*:/m)
    assert.equal(container.readinessProbe.httpGet.path, '/readyz')
    assert.equal(container.livenessProbe.httpGet.path, '/healthz')
  })
})

/** The members of a service of a compose file that the tests read. */
interface ComposeService {
  readonly image?: string
  readonly build?: string
  readonly environment?: Readonly<Record<string, string>>
  readonly volumes?: readonly string[]
  readonly ports?: readonly string[]
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly healthcheck?: { readonly test: readonly string[] }
  readonly stop_grace_period?: string
}

const REGIONS: Readonly<Record<string, { readonly gateways: Readonly<Record<string, string>> }>> = {
  'divided.yaml': { gateways: { 'gateway-eu': 'config-eu', 'gateway-us': 'config-us' } },
  'distributed.yaml': { gateways: { 'gateway-eu': 'config-all', 'gateway-us': 'config-all' } },
}

for (const [file, { gateways }] of Object.entries(REGIONS))
  describe(`examples/deploy/regions/${file}`, () => {
    const text = read(`regions/${file}`)
    const services: Readonly<Record<string, ComposeService>> = parse(text, { merge: true }).services
    const configOf = (folder: string) => read(`regions/${folder}/gateway.yaml`)
    const of = (name: string): ComposeService => services[name] ?? {}

    test('the gateways get every variable that their config names, and no unknown one', () => {
      for (const [name, folder] of Object.entries(gateways)) {
        const named = distinct(words(configOf(folder), /: env:([A-Z_]+)/g))
        const set = Object.keys(of(name).environment ?? {})
        const known = new Set([...OF_THE_GATEWAY, ...named])
        assert.deepEqual(
          set.filter((variable) => !known.has(variable)),
          [],
          name,
        )
        for (const variable of [...named, 'GATEWAY_CONFIG', 'DATABASE_URL', 'REDIS_URL', 'ADMIN_TOKEN'])
          assert.ok(set.includes(variable), `${name}: ${variable}`)
      }
    })

    test('.env.example has every variable that it asks for', () => {
      const asked = distinct(words(text, /\$\{([A-Z_]+):\?\}/g))
      const offered = words(read('regions/.env.example'), /^([A-Z_]+)=$/gm)
      assert.ok(asked.length > 0)
      assert.deepEqual(
        asked.filter((name) => !offered.includes(name)),
        [],
      )
    })

    test('each gateway has a valid config, a region, and stores that no gateway of another region has', async () => {
      const [regions, stores] = [new Set<string>(), new Set<string>()]
      for (const [name, folder] of Object.entries(gateways)) {
        const { environment = {}, volumes } = of(name)
        assert.deepEqual(volumes, [`./${folder}:/etc/gateway:ro`])
        assert.equal(environment.GATEWAY_CONFIG, '/etc/gateway/gateway.yaml')
        const secrets = {
          KEY_EU: 'sk-eu',
          KEY_US: 'sk-us',
          OPENAI_API_KEY: 'k',
          URL_SIGNING_SECRET: 'sixteen-letters!',
        }
        const { region } = loadConfig(parse(configOf(folder)), secrets)
        regions.add(environment.GATEWAY_REGION ?? region)
        stores.add(String(environment.DATABASE_URL)).add(String(environment.REDIS_URL))
      }
      assert.deepEqual([...regions], ['eu', 'us'])
      assert.equal(stores.size, 4)
    })

    test('a gateway starts behind what it needs, and every service that stays has a health check', () => {
      for (const name of Object.keys(gateways)) {
        const { environment = {}, depends_on: needs = {} } = of(name)
        for (const url of [environment.DATABASE_URL, environment.REDIS_URL])
          assert.equal(
            needs[/[@/]([a-z-]+)(?::\d+)?(?:\/gateway)?$/.exec(url ?? '')?.[1] ?? '']?.condition,
            'service_healthy',
          )
      }
      const once = Object.values(services).flatMap(({ depends_on: needs = {} }) =>
        Object.keys(needs).filter((name) => needs[name]?.condition === 'service_completed_successfully'),
      )
      for (const [name, { healthcheck, depends_on: needs = {} }] of Object.entries(services)) {
        for (const needed of Object.keys(needs)) assert.ok(services[needed], `${name} needs ${needed}`)
        if (!once.includes(name)) assert.equal(healthcheck?.test[0], 'CMD', name)
      }
    })

    test('gateways use the port of the image, are asked whether they are ready, and stop in time', () => {
      const port = Number(/^ENV .*PORT=(\d+)/m.exec(dockerfile)?.[1])
      for (const name of Object.keys(gateways)) {
        const { build, healthcheck, ports = [], stop_grace_period: grace = '' } = of(name)
        assert.equal(build, '..')
        assert.ok(healthcheck?.test.join(' ').includes(`:${port}/readyz`))
        for (const published of ports) assert.match(published, new RegExp(`^127\\.0\\.0\\.1:\\d+:${port}$`))
        assert.ok(Number.parseInt(grace, 10) >= NOTICE_S + STOPS_WITHIN_S)
      }
    })

    test('volumes are declared, and files beside it exist', () => {
      const declared = Object.keys(parse(text, { merge: true }).volumes)
      for (const { volumes = [] } of Object.values(services))
        for (const volume of volumes) {
          const [source = ''] = volume.split(':')
          if (source.startsWith('./')) assert.ok(existsSync(join(DEPLOY, 'regions', source)), volume)
          else assert.ok(declared.includes(source), volume)
        }
    })
  })

describe('examples/deploy/regions', () => {
  test('the balancer sends each region to its gateway, and has the port that compose publishes', () => {
    const balancer = read('regions/balancer.conf')
    const { services } = parse(read('regions/divided.yaml'), { merge: true })
    for (const region of ['eu', 'us']) {
      assert.match(balancer, new RegExp(`upstream gateway-${region} \\{\\s+server gateway-${region}:8787;`))
      assert.match(
        balancer,
        new RegExp(
          `server_name ${region}\\.gateway\\.example;\\s+location / \\{ proxy_pass http://gateway-${region}; \\}`,
        ),
      )
    }
    const [port] = words(balancer, /listen (\d+) default_server;/g)
    assert.deepEqual(services.balancer.ports, [`127.0.0.1:${port}:${port}`])
    assert.ok(services.balancer.healthcheck.test.includes(`http://127.0.0.1:${port}/balancer`))
  })

  test('rows are placed in tables that exist, and in regions of the database', async () => {
    const db = await openDatabase('sqlite::memory:')
    const tables = (await db.introspection.getTables()).map(({ name }) => name)
    await db.destroy()
    const sql = read('regions/place-rows.sql')
    const placed = words(sql, /^alter table (\w+) set locality (?:regional by row|global);$/gm)
    assert.ok(placed.length > 10)
    assert.deepEqual(
      [...placed, ...words(sql, /^update (\w+) /gm)].filter((name) => !tables.includes(name)),
      [],
    )
    const named = words(read('regions/cluster.sql'), /region (?:if not exists )?'(\w+)';/g)
    const localities = words(read('regions/distributed.yaml'), /--locality=region=(\w+)/g)
    assert.deepEqual(distinct(named), distinct(localities))
  })
})
