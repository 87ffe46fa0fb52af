import type { Candidate, GroupedModel } from './groups.ts'

/** A line of the config, and where in LiteLLM's file it comes from. */
export interface ConvertedLine {
  readonly line: object
  readonly from: readonly string[]
}

interface Draft {
  readonly key: string
  readonly first: Candidate
  weight: number | undefined
  readonly models: Map<string, string>
  readonly endpoints: Set<string>
  readonly from: Set<string>
}

/** Makes lines of deployments: those with the same address, key and settings are one line of several models. */
export function toLines(models: readonly GroupedModel[]): ConvertedLine[] {
  const drafts: Draft[] = []
  for (const { candidates } of models) {
    for (const candidate of candidates) {
      const { lineId, settings, facts, priority, isFallback, model, upstreamModel, served, path } = candidate
      const key = JSON.stringify([lineId, settings, facts, priority, isFallback])
      let draft = drafts.find(
        (one) => one.key === key && !one.models.has(model) && fits(one.weight, candidate.weight),
      )
      if (!draft) {
        draft = {
          key,
          first: candidate,
          weight: undefined,
          models: new Map(),
          endpoints: new Set(),
          from: new Set(),
        }
        drafts.push(draft)
      }
      draft.weight ??= candidate.weight
      draft.models.set(model, upstreamModel)
      draft.endpoints.add(served.endpoint)
      draft.from.add(path)
    }
  }
  const ids = new Set(drafts.flatMap(({ first }) => first.lineId ?? []))
  const taken = new Set<string>()
  return drafts.map((draft) => ({
    line: toLine(draft, newId(draft.first, ids, taken)),
    from: [...draft.from],
  }))
}

/** A line of weight 0 comes last, so a model that has one line of its own cannot use it. */
function fits(one: number | undefined, other: number | undefined): boolean {
  return one === other || (one === undefined && other !== 0) || (other === undefined && one !== 0)
}

function newId(
  { lineId, settings, isFallback }: Candidate,
  ids: ReadonlySet<string>,
  taken: Set<string>,
): string {
  const base = lineId ?? (isFallback ? `${settings.provider}-fallback` : settings.provider)
  let id = base
  for (let i = 2; taken.has(id) || (id !== lineId && ids.has(id)); i++) id = `${base}-${i}`
  taken.add(id)
  return id
}

function toLine({ first, weight, models, endpoints }: Draft, id: string): object {
  const { settings, facts, priority } = first
  const { provider, protocol, baseUrl, apiKey, region, timeouts, circuit, headers, body, unsupported } =
    settings
  const hasAll = protocol === 'anthropic' || baseUrl === 'https://api.openai.com/v1'
  return {
    id,
    provider,
    protocol,
    baseUrl,
    apiKey,
    region,
    endpoints: hasAll ? undefined : [...endpoints],
    priority: priority || undefined,
    weight: weight === 1 ? undefined : weight,
    models: Object.fromEntries(models),
    timeouts,
    circuit,
    headers,
    body,
    unsupported,
    ...facts,
  }
}
