import { cpSync, globSync, mkdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { run } from './packages.ts'

/** A line of a Dockerfile, with those that continue it. */
interface Instruction {
  readonly name: string
  readonly rest: string
}

/** The result of a Dockerfile, in a folder instead of an image. */
export interface Image {
  /** The folder that stands for `/`. */
  readonly root: string
  /** The folder of the last WORKDIR, under the root. */
  readonly workingFolder: string
  readonly env: Readonly<Record<string, string>>
  readonly ports: readonly string[]
  /** The user and the group, as numbers. */
  readonly user: readonly [string, string]
  readonly command: readonly string[]
  readonly healthcheck: readonly string[]
}

/** The variables that the programs of a RUN get, as far as they are not those of the image. */
const OF_THE_MACHINE = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(npm_|node_(?!extra_ca_certs$)|test_)/i.test(name)),
)

/**
 * Does what a Dockerfile says, line by line, in a bare folder: `FROM` puts this process's Node there, every `COPY` and `RUN`
 * is done as it stands. It throws at an instruction that it does not know.
 *
 * @param context the folder that `COPY` copies from.
 */
export function buildImage(dockerfile: string, context: string, root: string): Image {
  let cwd = root
  let user: [string, string] = ['0', '0']
  let command: string[] = []
  let healthcheck: string[] = []
  const env: Record<string, string> = {}
  const ports: string[] = []
  for (const { name, rest } of instructionsOf(dockerfile)) {
    switch (name) {
      case 'FROM': {
        if (!rest.startsWith(`node:${process.versions.node.split('.')[0]}-`)) throw new Error(`FROM ${rest}`)
        const programs = join(root, 'usr/local/bin')
        mkdirSync(programs, { recursive: true })
        cpSync(process.execPath, join(programs, 'node'))
        env.PATH = `${programs}:/usr/local/bin:/usr/bin:/bin`
        break
      }
      case 'ENV':
        for (const pair of rest.split(/\s+/)) Object.assign(env, Object.fromEntries([pair.split('=')]))
        break
      case 'WORKDIR':
        cwd = join(root, rest)
        mkdirSync(cwd, { recursive: true })
        break
      case 'COPY': {
        const [to = '', ...patterns] = rest.split(/\s+/).reverse()
        const files = globSync(patterns, { cwd: context })
        if (files.length === 0) throw new Error(`COPY ${rest}: there is nothing to copy`)
        mkdirSync(join(cwd, to), { recursive: true })
        for (const file of files) cpSync(join(context, file), join(cwd, to, basename(file)))
        break
      }
      case 'RUN':
        run(cwd, '/bin/sh', ['-c', rest.replaceAll(/--mount=\S+\s+/g, '')], {
          ...OF_THE_MACHINE,
          npm_config_prefer_offline: 'true',
          ...env,
        })
        break
      case 'USER':
        user = rest.split(':') as [string, string]
        break
      case 'EXPOSE':
        ports.push(rest)
        break
      case 'HEALTHCHECK':
        healthcheck = JSON.parse(rest.slice(rest.indexOf('[')))
        break
      case 'CMD':
        command = JSON.parse(rest)
        break
      default:
        throw new Error(`${name} is an instruction that this test cannot do`)
    }
  }
  return { root, workingFolder: cwd, env, ports, user, command, healthcheck }
}

function instructionsOf(dockerfile: string): Instruction[] {
  const text = readFileSync(dockerfile, 'utf8')
  const lines = text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
  return lines
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, name = '', rest = ''] = /^([A-Z]+) +(.+)$/.exec(line) ?? []
      return { name, rest }
    })
}
