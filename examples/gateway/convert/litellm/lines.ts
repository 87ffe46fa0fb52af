import { type Deployment, type Facts, SHARES } from './deployments.ts'
import type { Context } from './members.ts'

/** A deployment as a line of one model. */
export interface Candidate extends Deployment {
  readonly priority: number
  /** undefined = any but 0: there is no other line to share with. */
  readonly weight: number | undefined
}

/** The lines of each model, by id, in the order of the file. */
export type Groups = Map<string, Candidate[]>

/** The largest weight of a line. */
const MAX_WEIGHT = 1_000_000

/**
 * Groups deployments by model, with the priority and weight of each. Under the strategy `weighted`, lines of weight 0 come
 * last, by priority: so they stand for a later `order`.
 */
export function groupByModel(deployments: readonly Deployment[], { notes }: Context): Groups {
  const groups: Groups = new Map()
  for (const [model, all] of Map.groupBy(deployments, ({ model }) => model)) {
    const { kind } = (all[0] as Deployment).served
    const members = all.filter((one) => one.served.kind === kind)
    for (const { path, served } of all.filter((one) => !members.includes(one)))
      notes.add(path, `is of the kind "${served.kind}", and ${model} is "${kind}"; left out`)
    const orders = [...new Set(members.map(orderOf))].sort((a, b) => a - b)
    const first = members.filter((one) => orderOf(one) === orders[0])
    const weights = weightsOf(first)
    groups.set(
      model,
      members.map((one) => ({
        ...one,
        priority: orders.indexOf(orderOf(one)),
        weight: first.includes(one) ? weights.get(one) : 0,
      })),
    )
  }
  return groups
}

/** A deployment without an order comes after those that have one. */
function orderOf({ order }: Deployment): number {
  return order ?? Number.MAX_VALUE
}

function weightsOf(deployments: readonly Deployment[]): Map<Deployment, number | undefined> {
  const share = SHARES.find((name) => deployments.some(({ shares }) => (shares[name] ?? 0) > 0))
  const values = deployments.map(({ shares }) => (share ? (shares[share] ?? 0) : 1))
  const scale = Math.min(1, MAX_WEIGHT / Math.max(...values))
  const isAlone = deployments.length === 1
  // The product is rounded, up as well as down.
  const weightAt = (i: number): number => Math.min(MAX_WEIGHT, (values[i] as number) * scale)
  return new Map(deployments.map((one, i) => [one, isAlone ? undefined : weightAt(i)]))
}

/** A model of the config, and its lines without what the model says for them. */
interface GroupedModel {
  readonly id: string
  readonly kind: string
  readonly maxOutputTokens: number | undefined
  readonly facts: Facts
  readonly candidates: readonly Candidate[]
}

const FACTS = ['price', 'contextWindow', 'features'] as const

/** Returns a model with the facts that all its lines share. Each line keeps those that differ. */
export function toModel(id: string, candidates: readonly Candidate[]): GroupedModel {
  const shared: Facts = Object.fromEntries(
    FACTS.map((fact) => [fact, candidates[0]?.facts[fact]] as const).filter(([fact, value]) =>
      candidates.every(({ facts }) => isSame(facts[fact], value)),
    ),
  )
  const outputs = candidates.flatMap(({ maxOutputTokens }) => maxOutputTokens ?? [])
  return {
    id,
    kind: (candidates[0] as Candidate).served.kind,
    maxOutputTokens: outputs.length > 0 ? Math.min(...outputs) : undefined,
    facts: shared,
    candidates: candidates.map((one) => ({ ...one, facts: without(shared, one.facts) })),
  }
}

function without(shared: Facts, { price, contextWindow, features }: Facts): Facts {
  return {
    price: shared.price ? undefined : price,
    contextWindow: shared.contextWindow === undefined ? contextWindow : undefined,
    features: shared.features ? undefined : features,
  }
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** A line of the config, and where in LiteLLM's file it comes from. */
interface ConvertedLine {
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
      const { lineId, settings, facts, priority, model, upstreamModel, served, path } = candidate
      const key = JSON.stringify([lineId, settings, facts, priority])
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

function newId({ lineId, settings }: Candidate, ids: ReadonlySet<string>, taken: Set<string>): string {
  const base = lineId ?? settings.provider
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
