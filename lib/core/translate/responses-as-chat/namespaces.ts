import { isJsonObject, type JsonObject, objectsIn } from '../../json/index.ts'
import { toolName } from '../parts/tool-names.ts'
import { Untranslatable } from '../translation.ts'

/** A function as the caller of a response knows it. */
export interface NamespacedFunction {
  readonly name: unknown
  readonly namespace?: unknown
}

/** Returns the name that a function has in a chat, which has no namespaces, and shorter names. */
export function chatName(namespace: unknown, name: unknown): unknown {
  return toolName(namespace ? `${String(namespace)}__${String(name)}` : name)
}

/** Returns the functions of a response request by their names in a chat. */
export function namespacedFunctions({ tools }: JsonObject): ReadonlyMap<unknown, NamespacedFunction> {
  const byName = new Map<unknown, NamespacedFunction>()
  for (const { type, name, tools: functions } of objectsIn(tools)) {
    if (type === 'function') byName.set(chatName(undefined, name), { name })
    if (type !== 'namespace') continue
    for (const fn of objectsIn(functions))
      byName.set(chatName(name, fn.name), { name: fn.name, namespace: name })
  }
  return byName
}

/** It is written before the name of each of its functions. OpenAI's are shorter. */
const MAX_NAMESPACE_LENGTH = 256

/**
 * Returns the tools of a request with the functions of its namespaces in place of these.
 *
 * @throws {Untranslatable} naming a namespace that is too long.
 */
export function withoutNamespaces(tools: unknown): { readonly tool: JsonObject; readonly path: string }[] {
  return objectsIn(tools).flatMap((tool, i) => {
    const path = `tools[${i}]`
    const { type, name: namespace, tools: functions } = tool
    if (type !== 'namespace' || !Array.isArray(functions))
      return [{ tool: { ...tool, name: chatName(undefined, namespace) }, path }]
    if (String(namespace).length > MAX_NAMESPACE_LENGTH) throw new Untranslatable(`${path}.name`)
    return functions.flatMap((one: unknown, j) =>
      isJsonObject(one)
        ? [{ tool: { ...one, name: chatName(namespace, one.name) }, path: `${path}.tools[${j}]` }]
        : [],
    )
  })
}
