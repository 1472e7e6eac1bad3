// Stand-ins for what MotioncueExporter.cs uses of Unity, so that it compiles and runs without Unity.
// Names and meaning are those of Unity's scripting reference; the code is our own.

using System;

namespace UnityEngine
{
    public struct Vector3
    {
        public float x, y, z;

        public Vector3(float x, float y, float z) { this.x = x; this.y = y; this.z = z; }

        public static Vector3 zero { get { return new Vector3(); } }

        public static Vector3 operator -(Vector3 a, Vector3 b) { return new Vector3(a.x - b.x, a.y - b.y, a.z - b.z); }

        public static Vector3 operator /(Vector3 a, float b) { return new Vector3(a.x / b, a.y / b, a.z / b); }
    }

    public struct Quaternion
    {
        public float x, y, z, w;

        public Quaternion(float x, float y, float z, float w) { this.x = x; this.y = y; this.z = z; this.w = w; }

        public static Quaternion Inverse(Quaternion q) { return new Quaternion(-q.x, -q.y, -q.z, q.w); }

        // The rotation matrix of a unit quaternion, times the vector.
        public static Vector3 operator *(Quaternion q, Vector3 v)
        {
            double x = q.x, y = q.y, z = q.z, w = q.w;
            return new Vector3(
                (float)((1 - 2 * (y * y + z * z)) * v.x + 2 * (x * y - w * z) * v.y + 2 * (x * z + w * y) * v.z),
                (float)(2 * (x * y + w * z) * v.x + (1 - 2 * (x * x + z * z)) * v.y + 2 * (y * z - w * x) * v.z),
                (float)(2 * (x * z - w * y) * v.x + 2 * (y * z + w * x) * v.y + (1 - 2 * (x * x + y * y)) * v.z));
        }
    }

    public static class Time
    {
        public static float fixedDeltaTime = 0.02f;
#if UNITY_2020_2_OR_NEWER
        public static double fixedTimeAsDouble;
#else
        public static float fixedTime;
#endif
    }

    public class MonoBehaviour
    {
        public bool enabled = true;
    }

    public class Rigidbody
    {
        public Quaternion rotation;
        public Vector3 worldCenterOfMass;
#if UNITY_6000_0_OR_NEWER
        public Vector3 linearVelocity;
#else
        public Vector3 velocity;
#endif
        public Vector3 angularVelocity;
    }

    public class AddComponentMenu : Attribute
    {
        public AddComponentMenu(string menuName) { }
    }

    public class TooltipAttribute : Attribute
    {
        public TooltipAttribute(string tooltip) { }
    }

    public class RangeAttribute : Attribute
    {
        public RangeAttribute(float min, float max) { }
    }
}
