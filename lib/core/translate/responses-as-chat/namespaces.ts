import { isJsonObject, type JsonObject, objectsIn } from '../../json/index.ts'

/** OpenAI's longest name of a function. */
const MAX_NAME_LENGTH = 64

/** A function as the caller of a response knows it. */
export interface NamespacedFunction {
  readonly name: unknown
  readonly namespace: unknown
}

/** Returns the name that a function of a namespace has in a chat, which has no namespaces. */
export function chatName(namespace: unknown, name: unknown): string {
  const whole = `${String(namespace)}__${String(name)}`
  return whole.length > MAX_NAME_LENGTH ? String(name) : whole
}

/** Returns the functions of the namespaces of a response request, by their names in a chat. */
export function namespacedFunctions({ tools }: JsonObject): ReadonlyMap<string, NamespacedFunction> {
  const byName = new Map<string, NamespacedFunction>()
  for (const { type, name: namespace, tools: functions } of objectsIn(tools)) {
    if (type !== 'namespace') continue
    for (const { name } of objectsIn(functions)) byName.set(chatName(namespace, name), { name, namespace })
  }
  return byName
}

/** Returns the tools of a request with the functions of its namespaces in place of these. */
export function withoutNamespaces(tools: unknown): { readonly tool: JsonObject; readonly path: string }[] {
  return objectsIn(tools).flatMap((tool, i) => {
    const path = `tools[${i}]`
    const { type, name: namespace, tools: functions } = tool
    if (type !== 'namespace' || !Array.isArray(functions)) return [{ tool, path }]
    return functions.flatMap((one: unknown, j) =>
      isJsonObject(one)
        ? [{ tool: { ...one, name: chatName(namespace, one.name) }, path: `${path}.tools[${j}]` }]
        : [],
    )
  })
}
