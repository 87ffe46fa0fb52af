import assert from 'node:assert/strict'
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import { chat, post, runProgram, startProgram } from '../../support/gateway-process.ts'
import { ChartRenderer, LEAST, WITHOUT_GO } from '../deploy/chart.ts'
import { buildImage, type Image } from './image.ts'
import { pack, ROOT } from './packages.ts'

const DEPLOY = join(ROOT, 'examples/deploy')

describe('the steps of the Dockerfile, done in a bare folder', () => {
  const cleanUp = cleaningUp()
  const folder = mkdtempSync(join(tmpdir(), 'image-'))
  cleanUp.after(() => rmSync(folder, { recursive: true, force: true }))
  // The user of the image must get there.
  chmodSync(folder, 0o755)
  const context = join(folder, 'context')
  mkdirSync(join(context, 'packages'), { recursive: true })
  cpSync(join(DEPLOY, 'config'), join(context, 'config'), { recursive: true })
  pack(['toolkit', 'server'], join(context, 'packages'))
  const image = buildImage(join(DEPLOY, 'Dockerfile'), context, join(folder, 'root'))

  test('installs both packages, and nothing that only tests need', () => {
    const packages = globSync('node_modules/*', { cwd: image.workingFolder })
    assert.ok(packages.includes('node_modules/express-model-gateway-server'))
    assert.ok(packages.includes('node_modules/express-model-gateway'))
    assert.ok(!packages.includes('node_modules/typescript'))
  })

  test('its command serves as its user, answers the probes of Kubernetes and its own check, and ends on SIGTERM', {
    skip: WITHOUT_GO,
  }, async (t) => {
    const env = { ...image.env, DATABASE_URL: undefined, PORT: '0' }
    const gateway = await startProgram(asUser(image, image.command), image.workingFolder, env)
    t.after(() => gateway.stop())
    const healthcheck = () =>
      runProgram(asUser(image, image.healthcheck), image.workingFolder, {
        ...image.env,
        PORT: `${gateway.port}`,
      })

    assert.equal(new URL(gateway.url).hostname, image.env.HOST)
    assert.equal((await post(gateway.url, chat())).status, 200)
    for (const path of probePaths()) assert.equal((await fetch(`${gateway.url}${path}`)).status, 200, path)
    assert.equal((await healthcheck()).code, 0)
    assert.ok(existsSync(join(image.workingFolder, '.data/demo.db')))

    gateway.kill('SIGTERM')
    assert.equal((await gateway.exited).code, 0)
    assert.equal((await healthcheck()).code, 1)
  })

  test('the systemd unit finds the same program: its check of the config passes, and names what is missing', async () => {
    const unit = readFileSync(join(DEPLOY, 'express-model-gateway.service'), 'utf8')
    const command = /^ExecStartPre=(.+)$/m.exec(unit)?.[1] ?? ''
    const places: Readonly<Record<string, string>> = {
      '/usr/bin/node': process.execPath,
      '/opt/express-model-gateway/': `${image.workingFolder}/`,
      '/etc/express-model-gateway/': `${context}/config/`,
    }
    const words = command
      .split(' ')
      .map((word) => Object.entries(places).reduce((text, [from, to]) => text.replace(from, to), word))
    const secrets = { FIRST_KEY: 'a', OPENAI_API_KEY: 'b', URL_SIGNING_SECRET: 'c'.repeat(32) }

    assert.deepEqual(await runProgram(words, folder, secrets), {
      code: 0,
      signal: null,
      stdout: `${context}/config/gateway.yaml is valid\n`,
      stderr: '',
    })
    const { OPENAI_API_KEY: _, ...others } = secrets
    const { code, stderr } = await runProgram(words, folder, others)
    assert.equal(code, 1)
    assert.match(stderr, /^lines\[0\]\.apiKey: .*OPENAI_API_KEY.*\n$/)
  })
})

/** Only root can become another user. */
function asUser({ user: [user, group] }: Image, command: readonly string[]): readonly string[] {
  if (process.getuid?.() !== 0) return command
  return ['setpriv', `--reuid=${user}`, `--regid=${group}`, '--clear-groups', ...command]
}

function probePaths(): string[] {
  const chart = new ChartRenderer()
  const [gateway] = chart.render(LEAST).Deployment.spec.template.spec.containers
  chart.remove()
  const probes = ['startupProbe', 'readinessProbe', 'livenessProbe']
  return probes.map((probe) => gateway[probe].httpGet.path)
}
