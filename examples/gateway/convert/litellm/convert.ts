import { type Deployment, readDeployment } from './deployment.ts'
import { addAliases, addFallbacks, readAliases, readFallbacks } from './fallbacks.ts'
import { type Groups, groupByModel, toModel } from './groups.ts'
import { toLines } from './lines.ts'
import { isMapping, type Mapping, Members } from './members.ts'
import { Notes } from './notes.ts'
import { Settings } from './settings.ts'

/** A config of this gateway, made of LiteLLM's. */
export interface Converted {
  readonly config: object
  /** For each line of the config, the paths of what it comes from. */
  readonly from: readonly (readonly string[])[]
  /** One text for each thing that could not be carried over, or is not quite the same. */
  readonly notes: readonly string[]
}

export type LitellmFile = Mapping & { readonly model_list: readonly unknown[] }

const MAX_ATTEMPTS = 20
const USUAL_ATTEMPTS = 3

/**
 * Converts the content of LiteLLM's `config.yaml`.
 *
 * @param env the variables of this process, for `os.environ/NAME` where the config needs the value.
 */
export function convertLitellm(
  file: LitellmFile,
  env: Readonly<Record<string, string | undefined>>,
): Converted {
  const context = { notes: new Notes(), env: { ...env, ...variablesOf(file) } }
  const top = new Members(file, '', context)
  const settings = new Settings(top, context)
  const defaults = { ...settings.readLineDefaults(), credentials: top.list('credential_list') }
  top.take('model_list')
  const deployments = file.model_list
    .map((entry, i) => readDeployment(entry, `model_list[${i}]`, defaults, context))
    .filter((deployment): deployment is Deployment => deployment !== undefined)
  const groups = groupByModel(deployments, context)
  const aliases = readAliases(settings.router, context)
  const fallbacks = readFallbacks(settings)
  addFallbacks(groups, fallbacks, aliases, context)
  addAliases(groups, aliases, context)
  const isOrdered = fallbacks.length > 0 || deployments.some(({ order }) => order !== undefined)
  const strategy = settings.readStrategy(isOrdered)
  const access = settings.readAccess()
  const attempts = settings.readAttempts()
  settings.tellRest()

  const models = [...groups].map(([id, candidates]) => toModel(id, candidates))
  const lines = toLines(models)
  const free = models.filter(
    ({ facts, candidates }) => !facts.price && candidates.every((one) => !one.facts.price),
  )
  if (free.length > 0)
    context.notes.add(
      'model_list',
      `LiteLLM has prices of its own, the config has none for ${free.map(({ id }) => id).join(', ')}: they are free until you set their price`,
    )
  const config = {
    ...access,
    models: models.map(({ id, kind, maxOutputTokens, facts }) => ({ id, kind, maxOutputTokens, ...facts })),
    lines: lines.map(({ line }) => line),
    routing: { strategy, maxAttempts: attemptsFor(groups, attempts) },
  }
  return { config, from: lines.map(({ from }) => from), notes: context.notes.lines }
}

/** A call must be able to reach the lines of fallbacks, which come after all others. */
function attemptsFor(groups: Groups, attempts: number = USUAL_ATTEMPTS): number {
  const reached = [...groups.values()].filter((lines) => lines.some(({ isFallback }) => isFallback))
  return Math.min(MAX_ATTEMPTS, Math.max(attempts, ...reached.map(({ length }) => length)))
}

function variablesOf({ environment_variables: variables }: Mapping): Record<string, string> {
  if (!isMapping(variables)) return {}
  return Object.fromEntries(
    Object.entries(variables).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}
